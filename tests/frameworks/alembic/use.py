"""Uses the models as a program does."""

from decimal import Decimal

from models import Sale, Turnover
from sqlalchemy import create_engine, select
from sqlalchemy.orm import Session

engine = create_engine("postgresql+psycopg2://postgres@/postgres")
by_shop = select(Turnover.shop, Turnover.amount, Turnover.sales).order_by(Turnover.shop)

with Session(engine) as session:
    session.add_all([Sale(shop="north", amount=10), Sale(shop="south", amount=4)])
    # A query writes first what the session holds, and sees it.
    assert session.execute(by_shop).all() == [("north", Decimal(10), 1), ("south", Decimal(4), 1)]
    session.commit()

with Session(engine) as session:
    session.add(Sale(shop="north", amount=Decimal("2.5")))
    session.commit()
    assert session.get(Turnover, "north").amount == Decimal("12.5")
    session.add(Sale(shop="east", amount=1))
    session.flush()
    session.rollback()
    assert [shop for shop, _, _ in session.execute(by_shop)] == ["north", "south"]
