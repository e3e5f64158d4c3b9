from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('sitemapkit', '0001_initial'),
    ]

    operations = [
        migrations.AddField(
            model_name='buildfile',
            name='problem_kinds',
            field=models.JSONField(default=dict, verbose_name='problems'),
        ),
    ]
