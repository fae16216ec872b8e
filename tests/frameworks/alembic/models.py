from decimal import Decimal

from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class Base(DeclarativeBase):
    pass


class Sale(Base):
    __tablename__ = "sale"
    id: Mapped[int] = mapped_column(primary_key=True)
    shop: Mapped[str]
    amount: Mapped[Decimal]


class Turnover(Base):
    """What each shop has sold, which pg_eddy keeps up to date."""

    __tablename__ = "turnover"
    __table_args__ = {"info": {"is_view": True}}
    shop: Mapped[str] = mapped_column(primary_key=True)
    amount: Mapped[Decimal]
    sales: Mapped[int]
