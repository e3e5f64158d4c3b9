"""Whatever changes what editors set, by whatever way, raises the revision of its site."""

import datetime as dt
import threading
from decimal import Decimal

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, connection, transaction
from django.urls import reverse_lazy

from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.models import (
    ExclusionRule,
    ExtraUrl,
    Revision,
    SectionSettings,
    UrlOverride,
    hash_of,
    overrides,
)
from django_sitemapkit.overrides import overrides_of
from tests.factories import SITE, ProductFactory
from tests.overrides.setting import by_path, rule
from tests.testapp.models import Day, Moment, Product, Token

pytestmark = pytest.mark.django_db

KEY = SITE.key


def number(site=KEY):
    """Return the revision of a site, 0 where it has none."""
    return Revision.objects.filter(site=site).values_list("number", flat=True).first() or 0


def made(model, text="a", site=KEY):
    """Return an unsaved row of a model."""
    if model is SectionSettings:
        return model(site=site, section=text)
    name = "pattern" if model is ExclusionRule else "path"
    return model(site=site, **{name: f"/{text}/"})


CHANGES = {
    "save": lambda row: row.save(),
    "save of a field": lambda row: row.save(update_fields=["site"]),
    "delete": lambda row: row.delete(),
    "update": lambda row: type(row).objects.filter(pk=row.pk).update(changed_at=row.changed_at),
    "bulk_update": lambda row: type(row).objects.bulk_update([row], ["changed_at"]),
    "bulk_create": lambda row: type(row).objects.bulk_create([made(type(row), "b")]),
    "deletion of many": lambda row: type(row).objects.all().delete(),
    "update_or_create": lambda row: type(row).objects.update_or_create(pk=row.pk, defaults={}),
}


@pytest.mark.parametrize("model", [UrlOverride, ExtraUrl, ExclusionRule, SectionSettings])
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_raises_the_revision(model, change):
    """Of its own site alone, by whatever way; and the row that changed has it."""
    row = made(model)
    row.save()
    made(model, site="other").save()
    before, other = number(), number("other")
    CHANGES[change](row)
    if change != "deletion of many":
        assert number("other") == other
    assert number() > before
    changed = model.objects.filter(site=KEY).order_by("-revision").first()
    assert changed is None or changed.revision == number()


def test_many_rows_are_created_by_one_revision():
    """As one, however many there are; each site has its own."""
    rows = [made(UrlOverride, str(n), site) for n in range(3) for site in (KEY, "other")]
    UrlOverride.objects.bulk_create(rows)
    assert (number(), number("other")) == (1, 1)
    assert set(UrlOverride.objects.values_list("revision", flat=True)) == {1}
    assert {row.hash for row in UrlOverride.objects.all()} == {hash_of(f"/{n}/") for n in range(3)}


@pytest.mark.skipif(
    "not __import__('django.db').db.connection.features.supports_update_conflicts_with_target",
    reason="MySQL takes no unique_fields",
)
def test_a_row_that_is_created_over_another_is_new():
    """A page that follows the former one has to be reported."""
    by_path("/a/", priority="0.5")
    row = UrlOverride(site=KEY, path="/a/", priority="0.9")
    UrlOverride.objects.bulk_create(
        [row],
        update_conflicts=True,
        unique_fields=["site", "hash"],
        update_fields=["priority"],
    )
    stored = UrlOverride.objects.get()
    assert (stored.priority, stored.revision) == (Decimal("0.90"), number())


def test_rows_of_several_sites_are_changed_by_one_statement_for_each():
    """Each with the revision of its site."""
    for site in (KEY, KEY, "other"):
        made(UrlOverride, str(UrlOverride.objects.count()), site).save()
    assert UrlOverride.objects.update(priority="0.1") == 3
    assert {(row.site, row.revision) for row in UrlOverride.objects.all()} == {
        (KEY, number()),
        ("other", number("other")),
    }
    assert (number(), number("other")) == (3, 2)


def test_a_row_that_moves_raises_both_revisions():
    """The site it leaves lists its URL again."""
    row = by_path("/a/", include=False)
    row.site = "other"
    row.save()
    assert (number(), number("other"), row.revision) == (2, 1, 1)


@pytest.mark.parametrize("name", ["site", "path", "model", "object_id", "hash"])
def test_what_a_row_is_found_by_is_not_updated(name):
    """Its hash would be that of another one."""
    row = by_path("/a/")
    with pytest.raises(TypeError, match=name):
        UrlOverride.objects.update(**{name: "1"})
    with pytest.raises(TypeError):
        UrlOverride.objects.bulk_update([row], [name])
    with pytest.raises(TypeError):
        ExclusionRule.objects.update(pattern="/")


def test_texts_are_brought_into_their_normal_form():
    """So that they are found, and stand there once."""
    assert by_path("/café/ %e9").path == "/caf%C3%A9/%20%E9"
    with pytest.raises(IntegrityError), transaction.atomic():
        by_path("/caf%c3%a9/%20%E9")
    assert rule(" /é/*").pattern == "/%C3%A9/*"
    with pytest.raises(IntegrityError), transaction.atomic():
        rule("/%c3%a9/*")
    assert ExtraUrl.objects.create(site=KEY, path="/ü/").path == "/%C3%BC/"
    assert ExtraUrl.objects.create(site=KEY, path=reverse_lazy("about")).path == "/about/"


def test_a_field_that_is_saved_alone_is_saved_with_its_normal_form():
    """The hash goes with it."""
    row, other = by_path("/a/"), rule("/a/")
    row.path, other.pattern = "/ü/", "/ü/"
    row.save(update_fields=["path"])
    other.save(update_fields=["pattern"])
    assert UrlOverride.objects.get(hash=hash_of("/%C3%BC/")).path == "/%C3%BC/"
    assert ExclusionRule.objects.get(hash=hash_of("rule /%C3%BC/")).pattern == "/%C3%BC/"


@pytest.mark.parametrize("make", [made, lambda model: model(site=KEY)])
@pytest.mark.parametrize("model", [ExtraUrl, ExclusionRule])
def test_a_text_without_a_normal_form_is_refused(model, make):
    """A rule without a pattern would leave out everything."""
    row = make(model)
    setattr(row, "pattern" if model is ExclusionRule else "path", "relative")
    with pytest.raises(InvalidValue):
        row.save()
    with pytest.raises(InvalidValue):
        model.objects.bulk_create([model(site=KEY)])
    assert (model.objects.count(), number()) == (0, 0)


def test_what_was_rolled_back_is_forgotten():
    """Though the same number is given out again."""
    by_path("/first/")
    with transaction.atomic():
        by_path("/a/", include=False)
        assert overrides_of(SITE).model_labels == {""}
        rule("/x/")
        assert overrides_of(SITE).patterns
        inside = overrides_of(SITE).revision
        transaction.set_rollback(True)
    by_path("/b/")
    by_path("/c/")
    assert overrides_of(SITE).revision == inside
    assert not overrides_of(SITE).patterns


def test_nothing_is_raised_where_nothing_could_be_written():
    """The number and the change are one."""
    by_path("/a/")
    before = number()
    for change in (
        lambda: by_path("/a/"),
        lambda: UrlOverride.objects.bulk_create([made(UrlOverride), made(UrlOverride, "b")]),
    ):
        with pytest.raises(IntegrityError), transaction.atomic():
            change()
    assert (number(), UrlOverride.objects.count()) == (before, 1)


def test_a_text_and_an_object_spelt_alike_are_two(monkeypatch):
    """A path begins with a slash, a rule says what it is."""
    monkeypatch.setattr(overrides, "hash_of", lambda text: {"/a/": 1}.get(text, 2))
    rows = (made(UrlOverride), UrlOverride(site=KEY, model="a", object_id="b"), made(ExclusionRule))
    for row in rows:
        row.normalise()
    assert [row.hash for row in rows] == [1, 2, 2]
    assert [row.identity for row in rows] == ["/a/", "a b", "rule /a/"]
    assert [str(row) for row in rows] == ["/a/", "A b", "/a/"]
    assert str(Revision(site="a", number=2)) == "a 2"
    assert str(made(SectionSettings)) == f"a ({KEY})"
    assert str(made(ExtraUrl)) == "/a/"


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(
    "__import__('django.db').db.connection.vendor == 'sqlite'", reason="It has one writer"
)
@pytest.mark.parametrize("known", [True, False])
def test_three_that_change_something_at_once_take_three_numbers(known):
    """The next waits for the first to commit; be they the very first ones or not."""
    if known:
        by_path("/known/")
    before = number()
    Product.objects.exists()  # The first to connect makes no snapshot.
    ready, done, found = threading.Barrier(3), [], []

    def change(text):
        try:
            with transaction.atomic():
                UrlOverride.objects.exists()  # A snapshot, where the database takes one.
                ready.wait(10)
                found.append(made(UrlOverride, text))
                found[-1].save()
            done.append(text)
        finally:
            connection.close()

    threads = [threading.Thread(target=change, args=[text]) for text in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(done) == ["a", "b", "c"]
    assert sorted(row.revision for row in found) == [before + 1, before + 2, before + 3]
    assert number() == before + 3


@pytest.mark.parametrize("model", [UrlOverride, ExtraUrl, ExclusionRule])
def test_validation_brings_a_text_into_its_normal_form(model):
    """What save() would refuse is a ValidationError of its field, and so is a second row."""
    name = "pattern" if model is ExclusionRule else "path"
    row = model(site=KEY, **{name: "/ñ/"})
    row.full_clean()
    assert getattr(row, name) == "/%C3%B1/"
    row.save()
    with pytest.raises(ValidationError) as same:
        model(site=KEY, **{name: "/ñ/"}).full_clean()
    assert "already exists" in str(same.value)
    for text in ("/#a", "/a/../b/", "/\x01/", "/" + "ñ" * 342):  # Percent-encoded, 2,053.
        with pytest.raises(InvalidValue):
            model(site=KEY, **{name: text}).save()
        with pytest.raises(ValidationError) as wrong:
            model(site=KEY, **{name: text}).full_clean()
        assert list(wrong.value.message_dict) == [name], text
        assert len(wrong.value.message_dict[name]) == 1


def test_validation_takes_an_override_of_an_object():
    """It has no path to look at."""
    UrlOverride(site=KEY, model="testapp.product", object_id="1").full_clean()
    with pytest.raises(ValidationError) as wrong:
        ExtraUrl(site=KEY).full_clean()
    assert wrong.value.message_dict == {"path": ["This field cannot be blank."]}


OBJECTS = {
    "number": ProductFactory,
    "uuid": Token.objects.create,
    "date": lambda: Day.objects.create(date=dt.date(2024, 2, 29)),
    "datetime": lambda: Moment.objects.create(at=dt.datetime(2024, 5, 1, 12, tzinfo=dt.UTC)),
}


@pytest.mark.parametrize("make", OBJECTS.values(), ids=OBJECTS)
def test_overrides_of_an_object_are_found_by_the_object(make, django_assert_num_queries):
    """Keys of any type work, whatever time zone they are given in; ``site`` chooses one site."""
    obj = make()
    one = UrlOverride.objects.create_for_object(obj, site=KEY, include=False)
    two = UrlOverride.objects.create_for_object(obj, site="two", priority="0.9")
    UrlOverride.objects.create(site=KEY, path="/a/")
    assert set(UrlOverride.objects.for_object(obj)) == {one, two}
    assert list(UrlOverride.objects.filter(priority=None).for_object(obj)) == [one]
    if isinstance(obj.pk, dt.datetime):
        obj.pk = obj.pk.astimezone(dt.timezone(dt.timedelta(hours=5)))
    with django_assert_num_queries(1 + isinstance(obj.pk, dt.date)):
        assert UrlOverride.objects.for_object(obj, site="two").get() == two
    assert UrlOverride.objects.for_object(obj, site=KEY).update(include=True) == 1
    assert not UrlOverride.objects.for_object(ProductFactory()).exists()
