"""Middleware that projects write."""


def second_host(get_response):
    """Give the host second.example.com a URLconf of its own."""

    def answer(request):
        if request.get_host() == "second.example.com":
            request.urlconf = "tests.testapp.urls_second"
        return get_response(request)

    return answer
