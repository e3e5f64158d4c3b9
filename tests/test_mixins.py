"""Models that declare their sitemap themselves."""

import pytest
from django.db import models
from django.db.migrations.autodetector import MigrationAutodetector
from django.db.migrations.state import ModelState, ProjectState
from django.db.migrations.writer import MigrationWriter
from django.db.models import Q
from django.test.utils import isolate_apps

from django_sitemapkit import Route, Section, SitemapMixin
from django_sitemapkit.mixins import (
    declared_models,
    register_models,
    section_class_for,
    sitemap_options_of,
)
from django_sitemapkit.reading import reader_of
from django_sitemapkit.reading.keysets import EVERYTHING
from django_sitemapkit.registry import Registry, registry
from tests.factories import SITE, ArticleFactory, FeatureFactory
from tests.testapp.models import Article, ArticleProxy, BaseArticle, Feature, Shop


class Model(models.Model):
    """A base for models of one test."""

    class Meta:
        abstract = True
        app_label = "testapp"


def section_of(model, **options):
    """Return the section of a model with these options in its ``class Sitemap``."""
    return reader_of(section_class_for(model, type("Sitemap", (), options))(SITE))


def test_the_installed_models_that_declare_a_sitemap_are_registered_at_start():
    """No module has to be written, and nothing else is registered."""
    assert [model for model, _ in declared_models()] == [Article]
    section = registry.get(SITE, "articles")
    assert isinstance(section.options, Section)
    assert section.keyset.queryset.model is Article


def test_registering_again_elsewhere_gives_the_same(monkeypatch):
    """It depends on the models alone."""
    other = Registry()
    monkeypatch.setattr("django_sitemapkit.mixins.registry", other)
    register_models()
    assert [section.get_name() for section in other] == ["articles"]


def test_overriding_the_installed_apps_registers_nothing_twice(settings):
    """Django gets all apps ready once more whenever a project's test does so."""
    before = list(registry)
    settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, "django.contrib.sitemaps"]
    assert list(registry) == before


@isolate_apps("tests.testapp")
def test_a_model_declares_by_its_own_class_or_by_an_abstract_base():
    """The nearest of them counts, as a whole."""

    class Base(SitemapMixin, Model):
        class Meta(Model.Meta):
            abstract = True

        class Sitemap:
            priority = 0.1

    class Inheriting(Base):
        pass

    class Own(Base):
        class Sitemap:
            changefreq = "daily"

    assert sitemap_options_of(Inheriting) is Base.Sitemap
    assert sitemap_options_of(Own) is Own.Sitemap


@isolate_apps("tests.testapp")
def test_a_plain_mixin_may_declare_too():
    """A class that is no model has options as an abstract one has."""

    class Listed(SitemapMixin):
        class Sitemap:
            priority = 0.1

    class Thing(Listed, Model):
        pass

    assert sitemap_options_of(Thing) is Listed.Sitemap


@isolate_apps("tests.testapp")
def test_a_model_never_declares_by_a_concrete_parent():
    """Its rows are rows of the parent, and would be listed twice."""

    class Parent(SitemapMixin, Model):
        class Sitemap:
            priority = 0.1

    class Child(Parent):
        pass

    class Declared(Parent):
        class Sitemap:
            priority = 0.2

    assert sitemap_options_of(Parent) is Parent.Sitemap
    assert sitemap_options_of(Child) is None
    assert sitemap_options_of(Declared) is Declared.Sitemap


def test_a_model_never_declares_by_the_abstract_base_of_a_concrete_parent():
    """That base has spoken for the parent already, and the parent lists the row."""
    assert sitemap_options_of(Article) is BaseArticle.Sitemap
    assert sitemap_options_of(Feature) is None


def test_a_proxy_declares_nothing():
    """Its rows are those of the model behind it."""
    assert ArticleProxy not in [model for model, _ in declared_models()]


@isolate_apps("tests.testapp")
def test_a_class_without_options_declares_nothing():
    """The mixin alone is no wish to be listed; nor is a field that happens to be called so."""

    class Silent(SitemapMixin, Model):
        pass

    class Field(SitemapMixin, Model):
        Sitemap = models.CharField(max_length=10)

    assert sitemap_options_of(Silent) is None
    assert sitemap_options_of(Field) is None


@isolate_apps("tests.testapp")
def test_the_default_name_is_the_plural_of_the_model():
    """Fit for an address, and the same whatever language the process speaks."""

    class City(Model):
        class Meta(Model.Meta):
            abstract = False
            verbose_name_plural = "Städte & Cities"

    class Box(Model):
        class Meta(Model.Meta):
            abstract = False
            verbose_name_plural = "箱"

    assert section_of(City).get_name() == "stadte-cities"
    assert section_of(Box).get_name() == "box"
    assert section_of(City, name="cities").get_name() == "cities"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("queryset", "expected"),
    [
        pytest.param({"queryset_method": "published"}, {"yes"}, id="manager-method"),
        pytest.param({"queryset_method": "all"}, {"yes", "no"}, id="method-of-any-manager"),
        pytest.param({"filter": Q(published=False)}, {"no"}, id="Q"),
        pytest.param(
            {"queryset_method": "published", "filter": Q(title="no")}, set(), id="method-and-Q"
        ),
        pytest.param({"filter": Q()}, {"yes", "no"}, id="empty-Q"),
        pytest.param({}, {"yes", "no"}, id="absent"),
    ],
)
def test_the_rows_are_a_method_a_condition_or_all(queryset, expected):
    """They are asked for when they are read."""
    section = section_of(Article, **queryset)
    ArticleFactory(title="yes")
    ArticleFactory(title="no", published=False)
    assert {article.title for article in section.options.get_queryset()} == expected


@pytest.mark.django_db
@isolate_apps("tests.testapp")
def test_the_rows_may_be_a_method_that_only_querysets_have():
    """One made by ``Manager.from_queryset`` does not copy all of them."""

    class ShopQuerySet(models.QuerySet):
        def famous(self):
            return self.filter(slug="famous")

        famous.queryset_only = True

    class Proxy(Shop):
        objects = ShopQuerySet.as_manager()

        class Meta:
            app_label = "testapp"
            proxy = True

    Shop.objects.create(slug="famous")
    Shop.objects.create(slug="other")
    assert section_of(Proxy, queryset_method="famous").options.get_queryset().get().slug == "famous"


@pytest.mark.django_db
def test_the_options_of_a_section_are_all_there():
    """Values, routes and methods mean what they mean on a section."""

    class Sitemap:
        location = Route("article", pk="pk")
        limit = 7
        changefreq = "weekly"

        def priority(self, article):
            return f"{article.title} on {self.site.key}"

    ArticleFactory(title="one")
    section = reader_of(section_class_for(Article, Sitemap)(SITE))
    (chunk,) = section.chunks(EVERYTHING)
    assert (section.options.limit, section.constant_tags) == (7, {"changefreq": "weekly"})
    assert chunk.columns["priority"] == ["one on default"]


@pytest.mark.django_db
def test_the_rows_may_be_a_method_of_the_options():
    """``get_queryset()`` stands in for all of that, with the site at hand."""

    class Sitemap:
        queryset_method = "published"

        def get_queryset(self):
            return Article.objects.filter(title=self.site.key)

    ArticleFactory(title="default")
    ArticleFactory(title="other")
    assert section_class_for(Article, Sitemap)(SITE).get_queryset().get().title == "default"


@pytest.mark.django_db
def test_rows_of_a_child_are_listed_once():
    """With its parent, by the parent's own address."""
    FeatureFactory()
    ArticleFactory()
    rows = [len(section.keyset.queryset) for section in registry.enabled_readers(SITE)]
    assert rows == [2]


def test_a_migration_holds_the_import_path_of_the_mixin_alone():
    """Its options may change without one, and the path must never change."""
    state = ModelState.from_model(Article)
    assert SitemapMixin in state.bases
    text = MigrationWriter.serialize(state.bases)[0]
    assert "django_sitemapkit.mixins.SitemapMixin" in text
    assert SitemapMixin.__module__ == "django_sitemapkit.mixins"
    assert "Sitemap" not in {*state.options, *state.fields}


def test_a_changed_declaration_asks_for_no_migration():
    """The autodetector sees the same model."""

    def model(**options):
        body = {
            "__module__": "tests.testapp.models",
            "Meta": type("Meta", (), {"app_label": "testapp"}),
            "Sitemap": type("Sitemap", (), options),
        }
        with isolate_apps("tests.testapp"):
            return ModelState.from_model(type("Thing", (SitemapMixin, models.Model), body))

    def project(state):
        project = ProjectState()
        project.add_model(state)
        return project

    before, after = project(model(priority=0.1)), project(model(priority=models.F("rank"), limit=5))
    assert MigrationAutodetector(before, after)._detect_changes() == {}
