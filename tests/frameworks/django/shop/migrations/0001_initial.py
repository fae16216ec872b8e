from django.contrib.postgres.operations import CreateExtension
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True
    dependencies = []
    operations = [
        CreateExtension("pg_eddy"),
        migrations.CreateModel(
            "Sale",
            [
                ("id", models.BigAutoField(primary_key=True, auto_created=True, serialize=False, verbose_name="ID")),
                ("shop", models.TextField()),
                ("amount", models.DecimalField(max_digits=12, decimal_places=2)),
            ],
        ),
        migrations.CreateModel(
            "Turnover",
            [
                ("shop", models.TextField(primary_key=True, serialize=False)),
                ("amount", models.DecimalField(max_digits=20, decimal_places=2)),
                ("sales", models.BigIntegerField()),
                ("largest", models.DecimalField(max_digits=14, decimal_places=2)),
            ],
            options={"db_table": "turnover", "managed": False},
        ),
    ]
