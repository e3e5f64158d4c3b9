"""What is in the database of the browser's site: little data, and users with their sessions."""

import datetime as dt
import json
import sys

COUNTRIES = {"CL": "Chile", "FR": "France", "JP": "Japan"}
CITIES = 12
"""Cities of each country; each has a page in English, in Spanish and in French."""

USERS = {
    "editor": [
        *("change_city", "view_city", "view_build", "bulk_urloverride"),
        *("add_urloverride", "change_urloverride", "delete_urloverride", "view_urloverride"),
        *("add_extraurl", "change_extraurl", "delete_extraurl", "view_extraurl"),
        *("add_exclusionrule", "change_exclusionrule", "view_exclusionrule"),
        *("add_sectionsettings", "change_sectionsettings", "delete_sectionsettings"),
        "view_sectionsettings",
    ],
    "operator": ["view_build", "run_build", "publish_build"],
    "viewer": ["view_build", "view_urloverride", "view_extraurl", "view_city"],
}
"""Users and what they may do; "chief" may do everything."""

PASSWORD = "a word that nobody guesses"


def seed():
    """Fill a new database, and print as JSON the session of each user."""
    import django
    from django.core.management import call_command

    django.setup()
    from example_project.gazetteer.models import Article, City, Country

    call_command("migrate", verbosity=0)
    for place, (iso, name) in enumerate(COUNTRIES.items()):
        country = Country.objects.create(
            iso=iso, name=name, continent="EU", population=0, area=1, **addresses(name.lower())
        )
        City.objects.bulk_create(
            City(
                geonameid=100 * (place + 1) + number,
                country=country,
                name=f"Town {number} in {name}",
                name_es=f"Pueblo {number} de {name}",
                name_fr=f"Ville {number} de {name}",
                **addresses(f"town-{number}"),
                latitude=0,
                longitude=0,
                population=number,
                timezone="UTC",
            )
            for number in range(CITIES)
        )
    Article.objects.create(title="On maps", slug="on-maps", summary="Maps.", body="Maps.")
    add_audit()
    add_submissions()
    sys.stdout.write(json.dumps(sessions()))


def add_audit():
    """Add an audit with a finding of each kind."""
    from django.utils import timezone

    from django_sitemapkit.audit.kinds import AUDIT_KINDS, BAD_KINDS, CRAWL_KINDS, FindingKind
    from django_sitemapkit.audit.models import AuditFinding, AuditRun, SavedPage

    audited = AuditRun.objects.create(
        site="default",
        status="finished",
        sample=200,
        started_at=timezone.now(),
        ended_at=timezone.now(),
        checked=1_000,
        bad=len(BAD_KINDS),
        counts=dict.fromkeys(AUDIT_KINDS, 1),
    )
    crawled = AuditRun.objects.create(
        kind="crawl",
        site="default",
        status="finished",
        options={"starts": ["http://127.0.0.1/"], "max_urls": 100_000, "max_depth": 5},
        started_at=timezone.now(),
        ended_at=timezone.now(),
        checked=100_000,
        pending=1,
        bad=1,
        counts=dict.fromkeys(CRAWL_KINDS, 1),
    )
    SavedPage.objects.create(
        site="default",
        hash=1,
        path=f"/{'a-long-address/' * 9}",
        title="A page that no section lists",
        first_seen=timezone.now(),
        last_seen=timezone.now(),
    )
    AuditFinding.objects.bulk_create(
        AuditFinding(
            run=crawled if kind in CRAWL_KINDS else audited,
            section="countries",
            kind=kind,
            url=f"http://127.0.0.1/{kind}/{'a-long-address/' * 9}",
            detail=f"http://127.0.0.1/{kind}/ (301) → http://127.0.0.1/elsewhere/",
        )
        for kind in FindingKind
    )


def add_submissions():
    """Add a request to IndexNow that was rejected, and an index in Search Console."""
    from django.utils import timezone

    from django_sitemapkit.submission.models import SubmittedSite, SubmittedSitemap, UrlBatch

    SubmittedSite.objects.create(site="default", build=1)
    UrlBatch.objects.create(
        site="default",
        host="127.0.0.1",
        build=1,
        status="rejected",
        count=300,
        urls="\n".join(f"http://127.0.0.1/{number}/" for number in range(300)),
        answer="403: the key is not valid: the key file is missing or has another key",
        created_at=timezone.now(),
    )
    SubmittedSitemap.objects.create(
        site="default", address="http://127.0.0.1/sitemap.xml", errors=2, warnings=3
    )


def leave_out():
    """Have reasons of the project and of editors for which pages are not listed; print nothing."""
    import django

    django.setup()
    from django_sitemapkit.models import ExclusionRule, UrlOverride
    from example_project.gazetteer.models import City

    ExclusionRule.objects.create(site="default", pattern="/countries/france/town-3")
    UrlOverride.objects.create(site="default", path="/countries/japan/town-3-303/", include=False)
    City.objects.filter(pk=102).delete()
    late = City.objects.get(pk=303)
    late.pk = 999
    late.save(force_insert=True)
    sys.stdout.write(json.dumps(None))


def addresses(slug):
    """Return the columns of an address that is the same in all languages."""
    return {f"slug_{code}": slug for code in ("en", "es", "fr")}


def sessions():
    """Make the users; return the key of a session for each of them."""
    from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
    from django.contrib.auth.models import Permission, User
    from django.contrib.sessions.backends.db import SessionStore

    keys = {}
    for name in ("chief", *USERS):
        user = User.objects.create_user(name, is_staff=True, is_superuser=name == "chief")
        user.user_permissions.set(Permission.objects.filter(codename__in=USERS.get(name, ())))
        session = SessionStore()
        session[SESSION_KEY] = str(user.pk)
        session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
        session[HASH_SESSION_KEY] = user.get_session_auth_hash()
        session.save()
        keys[name] = session.session_key
    User.objects.create_user("typist", password=PASSWORD, is_staff=True, is_superuser=True)
    return keys


def trouble():
    """Add builds with problems, held for review, cancelled and failed; print their screens."""
    import django

    django.setup()
    from django.utils import timezone

    from django_sitemapkit.builds import build
    from django_sitemapkit.models import Build, Place
    from django_sitemapkit.sites import all_sites
    from example_project.gazetteer.models import City

    (site,) = all_sites()
    cities = City.objects.order_by("pk")
    keys = list(cities.values_list("pk", flat=True))
    cities.filter(pk__in=keys[:30]).update(slug_en="too-long-" * 300)
    build(site, started_by="operator")
    place = Place.objects.filter(section="cities").exclude(problems={}).latest("pk")
    cities.filter(pk__in=keys[9:]).delete()
    build(site, started_by="operator")
    for status, reason in (
        ("abandoned", {"code": "cancelled", "by": "operator"}),
        ("failed", "OperationalError: could not connect to server: Connection refused"),
    ):
        now = timezone.now()
        Build.objects.create(
            site=site.key,
            status=status,
            reason=reason,
            fence=9,
            started_at=now,
            ended_at=now,
            started_by="operator",
        )
    builds = Build.objects.filter(status__in=["held", "abandoned", "failed"])
    file = f"{place.build_id}/files/{place.pk}"
    paths = [*(f"{pk}/change" for pk in builds.values_list("pk", flat=True))]
    paths += [f"{place.build_id}/change", file, f"{file}/problems/invalid-url"]
    screens = ["sitemapkit/build/", *(f"sitemapkit/build/{path}/" for path in paths)]
    sys.stdout.write(json.dumps(screens))


def heal():
    """Take away all that needs attention, and have the site grow, by a build a day until today."""
    import django

    django.setup()
    from django.contrib.admin.models import LogEntry

    from django_sitemapkit.audit.models import AuditRun
    from django_sitemapkit.builds import build
    from django_sitemapkit.models import Build, ExclusionRule, UrlOverride
    from django_sitemapkit.sites import all_sites
    from django_sitemapkit.submission.models import SubmittedSitemap, UrlBatch
    from example_project.gazetteer.models import City

    for model in (AuditRun, UrlBatch, SubmittedSitemap, ExclusionRule):
        model.objects.all().delete()
    UrlOverride.objects.update(note="Campaign of the press office")
    LogEntry.objects.filter(object_repr__startswith="/press/").delete()  # Its path is very long.
    (site,) = all_sites()
    cities = list(City.objects.order_by("pk"))
    for day in range(10):
        for city in cities[: 2 + day % 5]:
            city.pk = 1_000 + City.objects.count()
            city.save(force_insert=True)
        build(site, started_by="scheduler")
    later = None
    for days, each in enumerate(Build.objects.order_by("-pk")):
        for name in ("started_at", "ended_at", "published_at"):
            setattr(each, name, getattr(each, name) - dt.timedelta(days=days, hours=2))
        each.replaced_at = later and later.published_at
        each.save()
        later = each
    sys.stdout.write("null")
