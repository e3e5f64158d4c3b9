"""The pages that import and export CSV files."""

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.admin.models import ADDITION, CHANGE
from django.contrib.admin.options import IncorrectLookupParameters
from django.core import signing
from django.db import IntegrityError
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseRedirect,
)
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from django_sitemapkit.admin.base import csv_response, known_sites, number, screen
from django_sitemapkit.admin.due_messages import add_due_message
from django_sitemapkit.admin.editor_settings import EditorSettingAdmin, log_rows
from django_sitemapkit.admin.log_messages import EXCLUDED
from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.overrides.cells import Table
from django_sitemapkit.overrides.transfer import (
    MAX_FILE_BYTES,
    MAX_FILE_LINES,
    Comparison,
    LineOutcome,
    compared,
    exported,
)

MAX_LINES_SHOWN = 200
"""Lines of each outcome that a preview shows."""

VALID_SECONDS = 24 * 60 * 60
"""How long a preview can be applied."""

OTHER_FIELDS = 20_000
"""Bytes of the form that applies a preview, besides the file."""


class FileForm(forms.Form):
    """A form for a CSV file."""

    file = forms.FileField(label=gettext_lazy("CSV file"), max_length=200)

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["file"].widget.attrs["accept"] = ".csv,text/csv"

    def clean_file(self) -> Any:
        """Reject a file that is too large, before reading it."""
        file = self.cleaned_data["file"]
        if file.size > MAX_FILE_BYTES:
            text = _("The file is larger than %(count)s bytes. Split it.")
            raise forms.ValidationError(text % {"count": number(MAX_FILE_BYTES)})
        return file


class TransferAdmin(EditorSettingAdmin):
    """A screen with CSV import and export."""

    change_list_template = "admin/sitemapkit/editor_settings/change_list.html"
    transfer: Table

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Link the pages for users who may open them."""
        query = request.GET.urlencode()
        context = {
            "import_url": self.has_import_permission(request) and reverse(self._url_name("import")),
            "export_url": reverse(self._url_name("export")) + (f"?{query}" if query else ""),
        }
        return super().changelist_view(request, {**context, **(extra_context or {})})

    def has_import_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may add and change rows."""
        return self.has_add_permission(request) and self.has_change_permission(request)

    @screen("export/", "{model}_export", "view_or_change")
    def export_view(self, request: HttpRequest) -> HttpResponseBase:
        """Send the rows of the list, of all its pages."""
        try:
            rows = self.get_changelist_instance(request).get_queryset(request)
        except IncorrectLookupParameters:
            text = _("Nothing was exported: the address contains an unknown filter.")
            messages.error(request, text)
            return HttpResponseRedirect(reverse(self._url_name("changelist")))
        name = f"sitemap-{self.opts.model_name}s.csv"
        return csv_response(request, name, exported(self.transfer, rows))

    @screen("import/", "{model}_import", "import", methods=["GET", "HEAD", "POST"])
    def import_view(self, request: HttpRequest) -> HttpResponse:
        """Ask for a file, preview its changes, and apply them once the user confirms."""
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
            except InvalidValue as error:
                form.add_error("file", str(error))
            else:
                return self._preview_page(request, comparison, payload)
        return self._page(request, form)

    def _confirmed(self, request: HttpRequest) -> HttpResponse:
        """Apply a preview after comparing the rows again."""
        payload = request.POST["payload"]
        try:
            text = signing.loads(payload, salt=self._salt(request), max_age=VALID_SECONDS)
            comparison = compared(self.transfer, text.encode(), known_sites(request))
        except signing.BadSignature:
            messages.error(request, _("This preview has expired. Upload the file again."))
            return HttpResponseRedirect(request.path)
        except InvalidValue as error:
            messages.error(request, str(error))
            return HttpResponseRedirect(request.path)
        if comparison.count(LineOutcome.INVALID) and "apply_rest" not in request.POST:
            messages.error(request, _("Nothing has changed yet: some lines are invalid."))
            return self._preview_page(request, comparison, payload)
        try:
            new, changed = comparison.apply()
        except IntegrityError:
            messages.error(request, _("Nothing has changed: another user changed the same rows."))
            return self._preview_page(request, comparison, payload)
        names = [name for name in comparison.columns if name in self.transfer.values]
        for rows, flag in ((new, ADDITION), (changed, CHANGE)):
            excluded: dict[bool, list[Any]] = {True: [], False: []}
            for row in rows:
                excluded["include" in names and row.include is False].append(row)
            log_rows(request.user.pk, excluded[True], flag, names, EXCLUDED)
            log_rows(request.user.pk, excluded[False], flag, names)
        created = ngettext("%(count)s row created.", "%(count)s rows created.", len(new))
        updated = ngettext("%(count)s row changed.", "%(count)s rows changed.", len(changed))
        created %= {"count": number(len(new))}
        updated %= {"count": number(len(changed))}
        messages.success(request, f"{created} {updated}")
        add_due_message(request, {row.site for row in (*new, *changed)})
        return HttpResponseRedirect(reverse(self._url_name("changelist")))

    def _salt(self, request: HttpRequest) -> str:
        return f"sitemapkit.{self.opts.model_name}.{request.user.pk}"

    def _payload(self, request: HttpRequest, data: bytes) -> str:
        """Return the file signed and compressed, for the form that applies it."""
        text = data.decode("utf-8-sig")
        payload = signing.dumps(text, salt=self._salt(request), compress=True)
        limit: Any = settings.DATA_UPLOAD_MAX_MEMORY_SIZE  # None for no limit
        if limit is not None and len(payload) > limit - OTHER_FIELDS:
            raise InvalidValue("invalid-csv", _("The file is too large for a form. Split it."))
        return payload

    def _preview_page(
        self, request: HttpRequest, comparison: Comparison, payload: str
    ) -> HttpResponse:
        applied = (LineOutcome.CREATED, LineOutcome.CHANGED)
        outcomes = [
            (LineOutcome.INVALID, _("Invalid")),
            (LineOutcome.CHANGED, _("Changed")),
            (LineOutcome.CREATED, _("Created")),
        ]
        groups = [
            {
                "title": title,
                "outcome": outcome.value,
                "count": comparison.count(outcome),
                "formatted_count": number(comparison.count(outcome)),
                "lines": comparison.of(outcome)[:MAX_LINES_SHOWN],
            }
            for outcome, title in outcomes
        ]
        context = {
            "groups": [group for group in groups if group["count"]],
            "unchanged": comparison.count(LineOutcome.UNCHANGED),
            "formatted_unchanged": number(comparison.count(LineOutcome.UNCHANGED)),
            "invalid": comparison.count(LineOutcome.INVALID),
            "rows": len(comparison.lines),
            "formatted_rows": number(len(comparison.lines)),
            "can_apply": any(comparison.count(outcome) for outcome in applied),
            "payload": payload,
            "most": MAX_LINES_SHOWN,
        }
        return self._page(request, FileForm(), **context)

    def _page(self, request: HttpRequest, form: FileForm, **context: Any) -> HttpResponse:
        known_sites(request)  # A message says so if there are none.
        context = {
            "title": _("Import %(name)s") % {"name": self.opts.verbose_name_plural},
            "form": form,
            "columns": ", ".join(self.transfer.columns),
            "max_bytes": number(MAX_FILE_BYTES),
            "max_lines": number(MAX_FILE_LINES),
            "changelist_url": reverse(self._url_name("changelist")),
            **context,
        }
        return self.render_page(request, "editor_settings/import", context)
