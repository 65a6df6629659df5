"""What the functions have in common.

Python looks for garbage whenever so many more objects live than did before. While a worker starts, whatever is imported
stays, so that looking finds nothing, and it takes a tenth of a cold start (docs/performance.md). It looks seldom here;
what has no cycles, which is nearly all, is freed at once as ever.
"""

import gc

gc.set_threshold(150_000)  # a worker has up to 100,000 objects when it has started
