from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("shop", "0001_initial")]
    operations = [
        migrations.RunSQL(
            """
            CREATE INCREMENTAL VIEW turnover AS
                SELECT shop, sum(amount) AS amount, count(*) AS sales FROM shop_sale GROUP BY shop
            """,
            "DROP INCREMENTAL VIEW turnover",
        ),
    ]
