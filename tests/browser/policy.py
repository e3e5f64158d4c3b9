"""A strict Content-Security-Policy on every page, and pages in the visitor's language."""

from django.utils import translation

POLICY = "default-src 'self'"


def strict_policy(get_response):
    """Allow scripts, styles and images from files of the site alone."""

    def answer(request):
        response = get_response(request)
        response.headers["Content-Security-Policy"] = POLICY
        return response

    return answer


def visitors_language(get_response):
    """Speak the visitor's language where the address names none, so that the admin is read in all.

    Where addresses without a prefix are those of one language, Django gives that to all the rest.
    """

    def answer(request):
        if not translation.get_language_from_path(request.path_info):
            translation.activate(translation.get_language_from_request(request))
        return get_response(request)

    return answer


def hebrew(get_response):
    """Speak Hebrew where the address names no language."""

    def answer(request):
        if not translation.get_language_from_path(request.path_info):
            translation.activate("he")
        return get_response(request)

    return answer
