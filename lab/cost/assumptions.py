"""What no run here can measure, each by name. Change one and see what it is worth.

Requests, units, bytes and messages are measured (counts.json); how long AWS takes for a request is not.
"""

KB = 1024
GB = 1024**3

MONTH_S = 30 * 24 * 3600
MEMORY_GB = 0.5  # MEMORY_MB in stacks/constructs/function.py

# Milliseconds that a caller waits for one request, typical and warm. DynamoDB says "single-digit milliseconds"
# (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Introduction.html); a transaction is two rounds.
# The others are round figures of the usual order of size: put the p50 of your own traces here.
LATENCY_MS = {
    "dynamodb.GetItem": 4,
    "dynamodb.PutItem": 6,
    "dynamodb.UpdateItem": 6,
    "dynamodb.Query": 6,
    "dynamodb.TransactWriteItems": 15,
    "sqs.SendMessage": 10,
    "sqs.SendMessageBatch": 12,
    "s3.PutObject": 30,
    "sesv2.SendEmail": 60,
    "engine.start": 30,  # an execution of a durable function, a state machine or a workflow, by name
    "provider.calls": 350,  # one call of the payment provider
}
OVERHEAD_MS = 5  # an invocation's own time: Python, logs, metrics
STEP_CPU_MS = 1  # CPU of a step, botocore included; threads of a worker share its fraction of a CPU

# https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html: Lambda polls for us, and we pay its requests.
POLLER_REQUESTS = 2  # a batch is received and deleted in one request each
IDLE_POLLERS = 5  # each queue's mapping long-polls with so many
IDLE_POLL_S = 20

# https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/cloudwatch_limits_cwl.html
LOG_EVENT_BYTES = 26  # billed for each event, in addition to its text
PLATFORM_LOG_BYTES = 420  # Lambda's own START, END and REPORT lines, with X-Ray's ids
PLATFORM_LOG_LINES = 3
ACCESS_LOG_BYTES = 220  # one line of ACCESS_LOG in stacks/constructs/api.py

# https://docs.aws.amazon.com/lambda/latest/dg/services-xray.html: one a second, and 5 % of the rest, each function.
TRACED_PER_S = 1
TRACED_SHARE = 0.05

ALARM_METRICS = 43  # of the alarms in the prod template: a metric-math alarm is billed by its metrics
DASHBOARDS = 1
SECRETS = 1
SWEEPS_PER_MONTH = 30 * 24 * 4  # `sweep_every_min` in stacks/settings.py
ROW_MONTHS = 12  # how long the order row and the receipt are paid for; they are never deleted
RECORD_MONTHS = 22 / 30  # TTL of an idempotency record: both retentions and a day
LOG_MONTHS = 12  # `log_retention` in stacks/settings.py

# The others' engines, for an order of three steps: place, charge, mail.
STEPS = 3
DURABLE_OPERATIONS = 1 + STEPS  # start, and each step: https://docs.aws.amazon.com/durable-execution/
DURABLE_RETAINED_MONTHS = 14 / 30  # the default retention of a finished execution
STATE_TRANSITIONS = 1 + STEPS  # into each task, and to the end
EXPRESS_MEMORY_MB = 64  # the least that is billed
TEMPORAL_ACTIONS = 1 + STEPS  # workflow started, each activity started: https://docs.temporal.io/cloud/pricing
TEMPORAL_HISTORY_KB = 10  # a closed workflow's event history
TEMPORAL_RETENTION_H = 7 * 24
