from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("shop", "0002_turnover")]
    operations = [
        migrations.RunSQL(
            """
            CREATE OR REPLACE INCREMENTAL VIEW turnover AS
                SELECT shop, sum(amount) AS amount, count(*) AS sales, max(amount) AS largest
                FROM shop_sale GROUP BY shop
            """,
            migrations.RunSQL.noop,
        ),
    ]
