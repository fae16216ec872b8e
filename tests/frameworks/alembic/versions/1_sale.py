import sqlalchemy as sa
from alembic import op

revision = "1"
down_revision = None


def upgrade():
    op.execute("CREATE EXTENSION IF NOT EXISTS pg_eddy")
    op.create_table(
        "sale",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("shop", sa.String(), nullable=False),
        sa.Column("amount", sa.Numeric(), nullable=False),
    )


def downgrade():
    op.drop_table("sale")
