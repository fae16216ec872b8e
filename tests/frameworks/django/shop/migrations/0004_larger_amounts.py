from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("shop", "0003_largest")]
    operations = [
        migrations.RunSQL(
            """
            SELECT eddy.with_views_suspended('shop_sale',
                'ALTER TABLE shop_sale ALTER amount TYPE numeric(14, 2)')
            """,
            migrations.RunSQL.noop,
            state_operations=[
                migrations.AlterField("sale", "amount", models.DecimalField(max_digits=14, decimal_places=2)),
            ],
        ),
    ]
