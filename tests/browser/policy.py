"""A strict Content-Security-Policy on every page."""

POLICY = "default-src 'self'"


def strict_policy(get_response):
    """Allow scripts, styles and images from files of the site alone."""

    def answer(request):
        response = get_response(request)
        response.headers["Content-Security-Policy"] = POLICY
        return response

    return answer
