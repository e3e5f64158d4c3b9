from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [("sitemapkit", "0001_initial")]

    operations = [
        migrations.AddField(
            model_name="build",
            name="checked_by",
            field=models.JSONField(
                blank=True,
                default=dict,
                editable=False,
                help_text="The sections that another build compared with the rows last, and which one.",
                verbose_name="checked by",
            ),
        ),
    ]
