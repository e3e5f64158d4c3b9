"""What the tests of the operator's pages share: people, a built site, and addresses."""

from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

OVERVIEW = "/admin/sitemapkit/sitemapsoverview/"
REQUEST = f"{OVERVIEW}request/"
PROGRESS = f"{OVERVIEW}progress/"

PEOPLE = {
    "anonymous": None,
    "staff": (),
    "viewer": ("view_build",),
    "builder": ("view_build", "run_build"),
    "publisher": ("view_build", "publish_build"),
}
"""Who there is, and what they may."""

EVIL = '<script>alert("x")</script> javascript:alert(1) "quoted\' \x01\x1b[31m'
"""What must be harmless wherever it is shown."""


def page(view, *arguments):
    """Return the address of a page of the builds."""
    return reverse(f"admin:sitemapkit_build_{view}", args=arguments)


def person(name, **options):
    """Return a client of someone who has logged in, or of nobody."""
    client = Client(**options)
    permissions = PEOPLE.get(name, ())
    if permissions is None:
        return client
    user = User.objects.filter(username=name).first()
    if user is None:
        user = User.objects.create(username=name, is_staff=True, is_superuser=name == "super")
        found = Permission.objects.filter(
            content_type__app_label="sitemapkit", codename__in=permissions
        )
        assert len(found) == len(permissions)
        user.user_permissions.set(found)
    client.force_login(user)
    return client


def text_of(response, status=200):
    """Return the page, which must be there and harmless."""
    assert response.status_code == status
    text = response.content.decode()
    assert "<script>alert" not in text
    assert 'href="javascript:' not in text
    for word in (" style=", " onclick=", " onload=", "<style", 'src="data:'):
        assert word not in text, word
    return text
