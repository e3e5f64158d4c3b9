"""A function that is called as Django's, and is another one."""


def reverse(viewname, urlconf=None, args=None, kwargs=None, current_app=None):
    """Return no URL of the URLconf."""
    return "/elsewhere/"
