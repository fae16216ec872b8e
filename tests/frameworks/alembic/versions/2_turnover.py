from alembic import op

revision = "2"
down_revision = "1"


def upgrade():
    op.execute(
        """
        CREATE OR REPLACE INCREMENTAL VIEW turnover WITH (changes = '1 day', storage = table) AS
            SELECT shop, sum(amount) AS amount, count(*) AS sales FROM sale GROUP BY shop
        """
    )


def downgrade():
    op.execute("DROP INCREMENTAL VIEW turnover")
