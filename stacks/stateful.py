"""What outlives a deployment: the two tables, the receipts bucket and the identity of the email sender."""

from typing import Any, cast

from aws_cdk import CfnOutput, CfnResource, RemovalPolicy, Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_ses as ses
from constructs import Construct

from stacks.settings import Settings, Stage

OPEN_ORDERS = "open-orders"


class StatefulStack(Stack):
    def __init__(self, scope: Construct, id: str, settings: Settings, **kwargs: Any) -> None:
        super().__init__(scope, id, termination_protection=settings.keep_data, **kwargs)
        self.idempotency = _table(
            self,
            "Idempotency",
            settings,
            key="id",
            time_to_live_attribute="expiration",
            stream=dynamodb.StreamViewType.NEW_IMAGE,
        )
        self.outbox_stream_arn = cast(str, self.idempotency.table_stream_arn)  # the relay's source
        # No TTL: the order row must know a charge after the idempotency records have expired.
        self.orders = _table(self, "Orders", settings, key="order_id")
        self.orders.add_global_secondary_index(
            index_name=OPEN_ORDERS,
            partition_key=dynamodb.Attribute(name="open_shard", type=dynamodb.AttributeType.STRING),
            sort_key=dynamodb.Attribute(name="open_since", type=dynamodb.AttributeType.NUMBER),  # epoch seconds
            projection_type=dynamodb.ProjectionType.KEYS_ONLY,
        )
        self.receipts = _bucket(self, settings)
        self.sender = _sender(self, settings)

        CfnOutput(self, "IdempotencyTableName", value=self.idempotency.table_name)
        CfnOutput(self, "OrdersTableName", value=self.orders.table_name)
        CfnOutput(self, "ReceiptsBucketName", value=self.receipts.bucket_name)


def removal_policy(settings: Settings) -> RemovalPolicy:
    """Return what happens to a resource with data when its stack deletes it or replaces it.

    In stages that keep data it stays, unless the deploy that creates it fails: so a failed first deploy leaves nothing.
    https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-attribute-deletionpolicy.html
    """
    return RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE if settings.keep_data else RemovalPolicy.DESTROY


def _table(scope: Construct, id: str, settings: Settings, *, key: str, **props: Any) -> dynamodb.Table:
    return dynamodb.Table(
        scope,
        id,
        partition_key=dynamodb.Attribute(name=key, type=dynamodb.AttributeType.STRING),
        billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
        encryption=dynamodb.TableEncryption.AWS_MANAGED,
        point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
            point_in_time_recovery_enabled=True
        ),
        removal_policy=removal_policy(settings),
        deletion_protection=settings.keep_data,
        **props,
    )


def _sender(scope: Construct, settings: Settings) -> ses.IEmailIdentity:
    if settings.sender_identity:  # CloudFormation cannot create an identity that exists
        return ses.EmailIdentity.from_email_identity_name(scope, "Sender", settings.sender_identity)
    # SES sends a link to this address once, and a person must open the link. A destroy keeps the identity, because
    # another stage may send from it.
    identity = ses.EmailIdentity(scope, "Sender", identity=ses.Identity.email(settings.sender))
    identity.apply_removal_policy(RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE)
    return identity


def _bucket(scope: Construct, settings: Settings) -> s3.Bucket:
    # The local AWS is deleted as a whole, so it needs no function that empties buckets.
    emptied = settings.stage is Stage.SANDBOX
    # Not versioned: a receipt can be written again from the order row.
    bucket = s3.Bucket(
        scope,
        "Receipts",
        encryption=s3.BucketEncryption.S3_MANAGED,
        block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
        object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
        enforce_ssl=True,
        removal_policy=removal_policy(settings),
        auto_delete_objects=emptied,
    )
    if emptied:
        # Without this, the CDK's function writes to a log group that no stack owns and that never expires.
        # https://github.com/aws/aws-cdk/issues/24815
        group = logs.LogGroup(
            scope, "EmptyBucketLogs", retention=logs.RetentionDays.ONE_MONTH, removal_policy=RemovalPolicy.DESTROY
        )
        provider = Stack.of(scope).node.find_child("Custom::S3AutoDeleteObjectsCustomResourceProvider")
        handler = cast(CfnResource, provider.node.find_child("Handler"))
        handler.add_property_override("LoggingConfig.LogGroup", group.log_group_name)
    return bucket
