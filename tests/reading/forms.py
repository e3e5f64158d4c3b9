"""Methods of every form, as projects write them."""
# ruff: noqa: D103

import functools

from django.urls import reverse, reverse_lazy
from django.utils.text import slugify

from tests.reading.elsewhere import reverse as other_reverse

# Read as columns


def plain(self):
    return reverse("article", args=[self.pk])


def by_text(self):
    return reverse("article", args=(str(self.id),))


def documented(self):
    """Return the URL."""
    return reverse("article", kwargs={"pk": self.pk})


def imported(self):
    from django.urls import reverse

    return reverse("article", kwargs=dict(pk=self.pk))  # noqa: C408


def lazily(self):
    return reverse_lazy("article", args=[self.pk])


def related(self):
    return reverse("product", kwargs={"shop": self.shop.slug, "slug": self.slug})


def key_of_related(self):
    return reverse("article", args=[self.shop.pk])


def foreign_key(self):
    return reverse("article", args=[self.shop_id])


def constant_argument(self):
    return reverse("product", args=["all", self.slug])


def suffix(self):
    return reverse("article", args=[self.pk]) + "?tab=all"


def f_string(self):
    return f"/products/{self.shop.slug}/{self.slug}/"


def formatted(self):
    return "/products/{}/{:05d}/".format(self.slug, self.pk)  # noqa: UP032


def percent(self):
    return "/products/%s/%s/" % (self.slug, self.pk)  # noqa: UP031


def added(self):
    return "/products/" + self.slug + "/"


def column(self):
    return self.slug


def parts_of_dates(self):
    return f"/{self.released_on.year}/{self.released_on.month:02}/{self.updated_at.day}/{self.pk}/"


def month(self):
    return f"/{self.released_on.strftime('%b').lower()}/{self.updated_at.isoformat()}/"


def other_types(self):
    return f"/{self.rank}/{self.public}/{self.updated_at}/{self.released_on}/{self.pk}/"


def guard(self):
    if not self.public:
        return None
    return reverse("article", args=[self.pk])


def two_ways(self):
    if self.note == "note" and self.rank is None:
        url = f"/notes/{self.pk}/"
    else:
        url = reverse("article", args=[self.pk])
    return url


def constant(self):
    return reverse("home")


def may_be_none(self):
    return reverse("article", args=[self.rank])


def through(self):
    return "/p" + self.tail


def tail(self):
    return f"/{self.name()}/{self.shop.slug}/"


def name(self):
    return self.slug.upper()


def assigned(self):
    slug = self.slug
    return reverse("product", args=["all", slug])


def assigned_in_vain(self):
    year = self.released_on.year
    if self.note:
        return f"/{self.pk}/"
    return f"/{year}/{self.pk}/"


def never_used(self):
    year = self.released_on.year  # noqa: F841  it raises for some rows
    return f"/{self.pk}/"


@functools.wraps(plain)
def decorated(self, *tabs, **options):
    return f"/{self.slug}/"


# Called


def positional_default(self, tab="all"):
    return f"/{self.slug}/{tab}/"


def keyword_default(self, *, tab="all"):
    return f"/{self.slug}/{tab}/"


def other_function(self):
    return other_reverse("article", args=[self.pk])


def other_import(self):
    from tests.reading.elsewhere import reverse

    return reverse("article", args=[self.pk])


def called(self):
    return "/" + slugify(self.slug) + "/"


def local_only_sometimes(self):
    if self.public:
        reverse = str
    return reverse(self.slug)


def computed_name(self):
    return reverse("art" + "icle", args=[self.pk])


def with_urlconf(self):
    return reverse("article", urlconf="tests.urls", args=[self.pk])


def loops(self):
    for each in (self.slug,):
        return each
    return None


def item(self):
    return self.slug[0]


def many(self):
    return f"/{self.tags.name}/"


def no_such_field(self):
    return f"/{self.slugg}/"


def the_object(self):
    return f"/{self}/"


def no_pattern(self):
    return reverse("nowhere", args=[self.pk])


@functools.cache
def cached(self):
    return f"/{self.slug}/"


def of_page(self):
    return reverse("page", args=[self.slug])


def of_translated(self):
    return reverse("translated", kwargs={"slug": self.slug})


def of_old(self):
    return reverse("old", kwargs={"slug": str(self.slug)})


def lastmod_of_shop(self, offer):
    return offer.shop.slug


def of_owner(self):
    return f"/{self.owner.slug}/"


def home_of_owner(self):
    return self.owner.home()


def home(self):
    return "/home/"


def of_a_month(self):
    return reverse("month", kwargs={"day": str(self.ends_at)})


def five_arguments(self):
    return reverse("article", None, [self.pk], None, "app")


def repeated_argument(self):
    return reverse("article", kwargs={"pk": self.pk, "pk": self.shop_id})  # noqa: F601


def of_offer(self):
    return f"/{self.offer.slug}/{self.pk}/"


def shop_of_offer(self):
    return f"/{self.offer.shop_id}/{self.pk}/"


def constant_of_shop(self):
    return f"/{self.shop.kind}/{self.pk}/"


def generated(self):
    return "/x/"
    yield


def imported_in_a_branch(self):
    if self.slug:
        from django.urls import reverse
    return reverse("article", args=[self.pk])


def url_as_changefreq(self, product):
    return reverse("nowhere")


def half(self, product):
    return 0.5
