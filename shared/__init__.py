"""Code that the functions share. It is deployed as a Lambda layer."""

import gc
import os

if "AWS_LAMBDA_FUNCTION_NAME" in os.environ:
    # Imported modules stay alive, so collections during a cold start find nothing. They take a tenth of its time.
    gc.set_threshold(150_000)  # a worker has up to 100,000 objects after its start
