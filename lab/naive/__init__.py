"""The three steps as people write them first. Competent code, which passes every test that nobody interrupts.

Each file names what is naive in it and what that costs. All remember messages by SQS's id of them, as AWS's own
example of a batch does ("Batch integration" in
https://docs.aws.amazon.com/powertools/python/latest/utilities/idempotency/).
"""
