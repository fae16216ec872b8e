import os
import sys

from alembic import context
from sqlalchemy import create_engine

sys.path.insert(0, os.path.dirname(__file__))
import models

engine = create_engine("postgresql+psycopg2://postgres@/postgres")


def include_object(table, name, type_, reflected, compare_to):
    """Leaves views to migrations that are written by hand."""
    return type_ != "table" or not table.info.get("is_view")


def include_name(name, type_, parent_names):
    """Leaves out the tables that pg_eddy keeps beside views."""
    return type_ != "table" or not name.endswith(("_changes", "_table"))


with engine.connect() as connection:
    context.configure(
        connection=connection,
        target_metadata=models.Base.metadata,
        include_object=include_object,
        include_name=include_name,
    )
    with context.begin_transaction():
        context.run_migrations()
