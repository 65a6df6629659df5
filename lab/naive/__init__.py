"""The three steps as a first version. The code is competent and passes every test without a fault.

Each file says what is naive and what the consequence is. All steps use the SQS message id as the key, as AWS's own
example of a batch does ("Batch integration" in
https://docs.aws.amazon.com/powertools/python/latest/utilities/idempotency/).
"""
