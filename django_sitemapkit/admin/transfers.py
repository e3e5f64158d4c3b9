"""The pages that take CSV files in and give them out."""

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.admin.options import IncorrectLookupParameters
from django.core import signing
from django.core.exceptions import PermissionDenied
from django.db import IntegrityError
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseNotAllowed,
    HttpResponseRedirect,
    StreamingHttpResponse,
)
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from django_sitemapkit.admin.history import changed_fields, log_added, log_changed
from django_sitemapkit.admin.steering import SteeringAdmin, known_sites
from django_sitemapkit.admin.wording import number
from django_sitemapkit.exceptions import RefusedValue
from django_sitemapkit.overrides.cells import Table
from django_sitemapkit.overrides.transfer import (
    MAX_BYTES,
    MAX_LINES,
    Comparison,
    Outcome,
    compared,
    exported,
)

__all__ = ["TransferAdmin"]

SHOWN = 200
"""Lines of each outcome that the dry run shows."""

VALID_SECONDS = 24 * 60 * 60
"""How long a dry run may lie before it is applied."""

OTHER_FIELDS = 20_000
"""Bytes of the form that applies a dry run, beside the file."""


class FileForm(forms.Form):
    """Asks for a file."""

    file = forms.FileField(label=gettext_lazy("CSV file"), max_length=200)

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["file"].widget.attrs["accept"] = ".csv,text/csv"

    def clean_file(self) -> Any:
        """Refuse a file that is too large before it is read."""
        file = self.cleaned_data["file"]
        if file.size > MAX_BYTES:
            text = _("The file has more than %(count)s bytes; split it.")
            raise forms.ValidationError(text % {"count": number_format(MAX_BYTES)})
        return file


class TransferAdmin(SteeringAdmin):
    """A screen whose rows travel as CSV."""

    change_list_template = "admin/sitemapkit/steering/change_list.html"
    transfer: Table

    def get_urls(self) -> list[URLPattern]:
        """Add the pages."""
        wrap, name = self.admin_site.admin_view, f"sitemapkit_{self.opts.model_name}"
        own = [
            path("import/", wrap(self.import_view), name=f"{name}_import"),
            path("export/", wrap(self.export_view), name=f"{name}_export"),
        ]
        return [*own, *super().get_urls()]

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Link the pages to those who may use them."""
        query = request.GET.urlencode()
        context = {
            "import_url": self._may_import(request) and reverse(self._url_name("import")),
            "export_url": reverse(self._url_name("export")) + (f"?{query}" if query else ""),
        }
        return super().changelist_view(request, {**context, **(extra_context or {})})

    def _may_import(self, request: HttpRequest) -> bool:
        return self.has_add_permission(request) and self.has_change_permission(request)

    def export_view(self, request: HttpRequest) -> HttpResponseBase:
        """Send the rows that the list shows, on all of its pages."""
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied
        if request.method not in {"GET", "HEAD"}:
            return HttpResponseNotAllowed(["GET", "HEAD"])
        try:
            rows = self.get_changelist_instance(request).get_queryset(request)
        except IncorrectLookupParameters:
            text = _("Nothing is exported: the address has a filter that the list does not know.")
            messages.error(request, text)
            return HttpResponseRedirect(reverse(self._url_name("changelist")))
        lines = exported(self.transfer, rows) if request.method == "GET" else iter(())
        response = StreamingHttpResponse(lines, content_type="text/csv; charset=utf-8")
        name = f"sitemap-{self.opts.model_name}s.csv"
        response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
        response.headers["X-Content-Type-Options"] = "nosniff"
        return response

    def import_view(self, request: HttpRequest) -> HttpResponse:
        """Ask for a file, show what it would do, and do it once that is confirmed."""
        if not self._may_import(request):
            raise PermissionDenied
        if request.method == "POST" and "payload" in request.POST:
            return self._confirmed(request)
        if request.method != "POST":
            return self._page(request, FileForm())
        form = FileForm(request.POST, request.FILES)
        if form.is_valid():
            data = form.cleaned_data["file"].read()
            try:
                comparison = compared(self.transfer, data, known_sites(request))
                payload = self._payload(request, data)
            except RefusedValue as refusal:
                form.add_error("file", str(refusal))
            else:
                return self._dry_run(request, comparison, payload)
        return self._page(request, form)

    def _confirmed(self, request: HttpRequest) -> HttpResponse:
        """Apply what a dry run has shown; the rows are compared once more."""
        payload = request.POST["payload"]
        try:
            text = signing.loads(payload, salt=self._salt(request), max_age=VALID_SECONDS)
            comparison = compared(self.transfer, text.encode(), known_sites(request))
        except signing.BadSignature:
            messages.error(
                request, _("The dry run is too old, or not yours; choose the file anew.")
            )
            return HttpResponseRedirect(request.path)
        except RefusedValue as refusal:
            messages.error(request, str(refusal))
            return HttpResponseRedirect(request.path)
        if comparison.count(Outcome.REFUSED) and "apply_rest" not in request.POST:
            messages.error(request, _("Nothing is changed yet: some lines are refused."))
            return self._dry_run(request, comparison, payload)
        try:
            new, changed = comparison.apply()
        except IntegrityError:
            messages.error(request, _("Nothing is changed: others have changed the same rows."))
            return self._dry_run(request, comparison, payload)
        self._log(request, comparison, new, changed)
        texts = [
            ngettext("%(count)s row created", "%(count)s rows created", len(new)),
            ngettext("%(count)s row changed", "%(count)s rows changed", len(changed)),
        ]
        counts = [number_format(len(new)), number_format(len(changed))]
        told = [text % {"count": count} for text, count in zip(texts, counts, strict=True)]
        messages.success(request, f"{', '.join(told)}.")
        return HttpResponseRedirect(reverse(self._url_name("changelist")))

    def _log(
        self, request: HttpRequest, comparison: Comparison, new: list[Any], changed: list[Any]
    ) -> None:
        names = [name for name in comparison.columns if name in self.transfer.values]
        log_added(request.user.pk, new)
        log_changed(request.user.pk, changed, changed_fields(self.model, names))

    def _salt(self, request: HttpRequest) -> str:
        return f"sitemapkit.{self.opts.model_name}.{request.user.pk}"

    def _payload(self, request: HttpRequest, data: bytes) -> str:
        """Return a file signed and packed, for the form that applies it."""
        text = data.decode("utf-8-sig")
        payload = signing.dumps(text, salt=self._salt(request), compress=True)
        room: Any = settings.DATA_UPLOAD_MAX_MEMORY_SIZE  # None for no limit
        if room is not None and len(payload) > room - OTHER_FIELDS:
            raise RefusedValue("invalid-csv", _("The file is too large for a form; split it."))
        return payload

    def _dry_run(self, request: HttpRequest, comparison: Comparison, payload: str) -> HttpResponse:
        outcomes = [
            (Outcome.REFUSED, _("Refused")),
            (Outcome.CHANGED, _("Changed")),
            (Outcome.CREATED, _("Created")),
        ]
        shown = [
            {
                "title": title,
                "outcome": outcome.value,
                "count": comparison.count(outcome),
                "lines": comparison.of(outcome)[:SHOWN],
            }
            for outcome, title in outcomes
        ]
        new = comparison.count(Outcome.CREATED) + comparison.count(Outcome.CHANGED)
        context = {
            "shown": [some for some in shown if some["count"]],
            "unchanged": comparison.count(Outcome.UNCHANGED),
            "refused": comparison.count(Outcome.REFUSED),
            "rows": len(comparison.lines),
            "to_apply": new,
            "payload": payload,
            "most": SHOWN,
        }
        return self._page(request, FileForm(), **context)

    def _page(self, request: HttpRequest, form: FileForm, **context: Any) -> HttpResponse:
        known_sites(request)  # A message says so where there is none.
        context = {
            **self.admin_site.each_context(request),
            "title": _("Import %(name)s") % {"name": self.opts.verbose_name_plural},
            "opts": self.opts,
            "form": form,
            "media": self.media,
            "columns": ", ".join(self.transfer.columns),
            "max_bytes": number(MAX_BYTES),
            "max_lines": number(MAX_LINES),
            "changelist_url": reverse(self._url_name("changelist")),
            **context,
        }
        return TemplateResponse(request, "admin/sitemapkit/steering/import.html", context)
