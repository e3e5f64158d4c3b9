"""Names and addresses in Spanish and French; until the next load they are the common ones."""

from django.db import migrations, models
from django.db.models import F

EMPTY = "Leave empty if it is the same as the name."


def copy_addresses(apps, schema_editor):
    for name in ("Country", "City"):
        rows = apps.get_model("gazetteer", name)._default_manager.using(schema_editor.connection.alias)
        rows.update(slug_es=F("slug_en"), slug_fr=F("slug_en"))


class Migration(migrations.Migration):

    dependencies = [
        ("gazetteer", "0001_initial"),
    ]

    operations = [
        migrations.RenameField("country", "slug", "slug_en"),
        migrations.RenameField("city", "slug", "slug_en"),
        *(
            migrations.AddField(
                model,
                f"name_{code}",
                models.CharField(
                    blank=True, default="", help_text=EMPTY, max_length=200, verbose_name=f"name in {language}"
                ),
                preserve_default=False,
            )
            for model in ("country", "city")
            for code, language in (("es", "Spanish"), ("fr", "French"))
        ),
        *(
            migrations.AddField(
                model,
                f"slug_{code}",
                models.CharField(default="", max_length=200, verbose_name=f"address in {language}"),
                preserve_default=False,
            )
            for model in ("country", "city")
            for code, language in (("es", "Spanish"), ("fr", "French"))
        ),
        migrations.RunPython(copy_addresses, migrations.RunPython.noop),
        migrations.AlterField("country", "name", models.CharField(max_length=200)),
        migrations.AlterField(
            "country", "slug_en", models.SlugField(max_length=80, unique=True, verbose_name="address")
        ),
        migrations.AlterField(
            "country", "slug_es", models.SlugField(max_length=80, unique=True, verbose_name="address in Spanish")
        ),
        migrations.AlterField(
            "country", "slug_fr", models.SlugField(max_length=80, unique=True, verbose_name="address in French")
        ),
        migrations.AlterField(
            "city",
            "slug_en",
            models.CharField(
                help_text="Derived from the name; non-ASCII letters are kept.", max_length=200, verbose_name="address"
            ),
        ),
    ]
