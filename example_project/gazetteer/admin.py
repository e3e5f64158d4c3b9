"""The gazetteer in Django's admin."""

from django.contrib import admin
from django.forms import ModelForm
from django.http import HttpRequest
from django.utils import timezone

from django_sitemapkit.admin import SitemapOverrideInline

from .models import Article, City, Country


@admin.register(Country)
class CountryAdmin(admin.ModelAdmin):
    list_display = ["name", "iso", "continent", "capital", "population"]
    list_filter = ["continent"]
    search_fields = ["name", "name_es", "name_fr", "iso", "capital"]
    inlines = [SitemapOverrideInline]


@admin.register(City)
class CityAdmin(admin.ModelAdmin):
    list_display = ["name", "country", "population", "timezone"]
    list_select_related = ["country"]
    search_fields = ["name", "name_es", "name_fr", "slug_en"]
    autocomplete_fields = ["country"]
    ordering = ["-population", "geonameid"]
    # Counting every city for "of 234,908" would cost more than the page itself.
    show_full_result_count = False
    inlines = [SitemapOverrideInline]


@admin.register(Article)
class ArticleAdmin(admin.ModelAdmin):
    list_display = ["title", "published_at", "edited_at", "fault"]
    list_filter = ["fault"]
    search_fields = ["title", "summary"]
    prepopulated_fields = {"slug": ["title"]}
    readonly_fields = ["edited_at"]
    inlines = [SitemapOverrideInline]

    def save_model(self, request: HttpRequest, obj: Article, form: ModelForm, change: bool) -> None:
        """Date the edit where readers would notice it, and only there."""
        # Browsers send line ends as \r\n, which is no edit.
        obj.body = obj.body.replace("\r\n", "\n")
        before = Article.objects.filter(pk=obj.pk).values("title", "summary", "body").first() or {}
        if any(getattr(obj, name) != value for name, value in before.items()):
            obj.edited_at = timezone.now()
        super().save_model(request, obj, form, change)
