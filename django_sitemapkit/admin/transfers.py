"""The pages that import and export CSV files."""

from collections.abc import Sequence
from typing import Any, ClassVar

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
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from django_sitemapkit.admin.activity import EXCLUDED, exclusion_message, log_rows
from django_sitemapkit.admin.base import csv_response, known_sites, number_text, screen
from django_sitemapkit.admin.editor_settings import EditorSettingAdmin, add_pending_message
from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.overrides import (
    MAX_CSV_BYTES,
    MAX_CSV_LINES,
    Comparison,
    CsvTable,
    LineOutcome,
    compare_file,
    exported_lines,
)

MAX_LINES_SHOWN = 200
"""Lines of each outcome that a preview shows."""

VALID_SECONDS = 24 * 60 * 60
"""How long a preview can be applied."""

OTHER_FIELDS = 20_000
"""Bytes of the form that applies a preview, besides the file."""


class CsvFileForm(forms.Form):
    """A form to upload a CSV file."""

    file = forms.FileField(
        label=gettext_lazy("CSV file"),
        max_length=200,
        widget=forms.ClearableFileInput({"accept": ".csv,text/csv"}),
    )

    def clean_file(self) -> Any:
        """Return the uploaded file, which is not read yet; reject one that is too large."""
        file = self.cleaned_data["file"]
        if file.size > MAX_CSV_BYTES:
            text = _("The file is larger than %(count)s bytes. Split it.")
            raise forms.ValidationError(text % {"count": number_text(MAX_CSV_BYTES)})
        return file


@screen("export/", "{model}_export", "view_or_change")
def export_view(model_admin: Any, request: HttpRequest) -> HttpResponseBase:
    """Send all rows that the list's filters and search select as a CSV file."""
    try:
        rows = model_admin.get_changelist_instance(request).get_queryset(request)
    except IncorrectLookupParameters:
        messages.error(request, _("Nothing was exported: the address contains an unknown filter."))
        return HttpResponseRedirect(model_admin.view_url("changelist"))
    return csv_response(
        request,
        f"sitemap-{model_admin.opts.model_name}s.csv",
        exported_lines(model_admin.transfer, rows),
    )


@screen("import/", "{model}_import", "add", "change", methods=["GET", "HEAD", "POST"])
def import_view(model_admin: Any, request: HttpRequest) -> HttpResponseBase:
    """Ask for a CSV file, show what it would change, and apply that once the user confirms."""
    if "payload" in request.POST:
        return _apply_import(model_admin, request)
    is_sent = request.method == "POST"
    form = CsvFileForm(request.POST, request.FILES) if is_sent else CsvFileForm()
    if form.is_valid():
        data = form.cleaned_data["file"].read()
        try:
            comparison = compare_file(model_admin.transfer, data, known_sites(request))
            payload = _signed_payload(model_admin, request, data)
        except InvalidValue as error:
            form.add_error("file", str(error))
        else:
            return _preview_page(model_admin, request, comparison, payload)
    return _import_page(model_admin, request, form)


def _apply_import(model_admin: Any, request: HttpRequest) -> HttpResponseBase:
    """Apply the file whose preview was confirmed, after comparing it with the rows again.

    If nothing can be applied, a message says why.
    """
    payload = request.POST["payload"]
    table = model_admin.transfer
    try:
        text = signing.loads(
            payload, salt=_signing_salt(model_admin, request), max_age=VALID_SECONDS
        )
        comparison = compare_file(table, text.encode(), known_sites(request))
    except (signing.BadSignature, InvalidValue) as error:
        expired = _("This preview has expired. Upload the file again.")
        messages.error(request, str(error) if isinstance(error, InvalidValue) else expired)
        return HttpResponseRedirect(request.path)
    if comparison.count(LineOutcome.INVALID) and "apply_rest" not in request.POST:
        messages.error(request, _("Nothing has changed yet: some lines are invalid."))
        return _preview_page(model_admin, request, comparison, payload)
    try:
        new, changed = comparison.apply()
    except IntegrityError:
        messages.error(request, _("Nothing has changed: another user changed the same rows."))
        return _preview_page(model_admin, request, comparison, payload)
    names = [name for name in comparison.columns if name in table.values]
    for rows, flag in ((new, ADDITION), (changed, CHANGE)):
        for message in (EXCLUDED, ""):
            same = [row for row in rows if exclusion_message(row, names) == message]
            log_rows(request.user.pk, same, flag, names, message)
    created = ngettext("%(count)s row created.", "%(count)s rows created.", len(new)) % {
        "count": number_text(len(new))
    }
    updated = ngettext("%(count)s row changed.", "%(count)s rows changed.", len(changed)) % {
        "count": number_text(len(changed))
    }
    messages.success(request, f"{created} {updated}")
    add_pending_message(request, {row.site for row in (*new, *changed)})
    return HttpResponseRedirect(model_admin.view_url("changelist"))


def _signing_salt(model_admin: Any, request: HttpRequest) -> str:
    """Return the salt for signing a file, so that only the same user can apply it to this model."""
    return f"sitemapkit.{model_admin.opts.model_name}.{request.user.pk}"


def _signed_payload(model_admin: Any, request: HttpRequest, data: bytes) -> str:
    """Return a file as signed and compressed text, for the form that applies it.

    Raises InvalidValue if it is too large for a form.
    """
    text = data.decode("utf-8-sig")
    payload = signing.dumps(text, salt=_signing_salt(model_admin, request), compress=True)
    limit: Any = settings.DATA_UPLOAD_MAX_MEMORY_SIZE  # None for no limit
    if limit is not None and len(payload) > limit - OTHER_FIELDS:
        raise InvalidValue("invalid-csv", _("The file is too large for a form. Split it."))
    return payload


def _preview_page(
    model_admin: Any, request: HttpRequest, comparison: Comparison, payload: str
) -> HttpResponseBase:
    """Return the import page with what a file would change, and the form that applies it."""
    counts = {outcome: comparison.count(outcome) for outcome in LineOutcome}
    titles = {
        LineOutcome.INVALID: _("Invalid"),
        LineOutcome.CHANGED: _("Changed"),
        LineOutcome.CREATED: _("Created"),
    }
    return _import_page(
        model_admin,
        request,
        CsvFileForm(),
        groups=[
            {
                "title": title,
                "outcome": outcome.value,
                "count": counts[outcome],
                "formatted_count": number_text(counts[outcome]),
                "lines": comparison.lines_with(outcome)[:MAX_LINES_SHOWN],
            }
            for outcome, title in titles.items()
            if counts[outcome]
        ],
        unchanged=counts[LineOutcome.UNCHANGED],
        formatted_unchanged=number_text(counts[LineOutcome.UNCHANGED]),
        invalid=counts[LineOutcome.INVALID],
        rows=len(comparison.lines),
        formatted_rows=number_text(len(comparison.lines)),
        can_apply=counts[LineOutcome.CREATED] or counts[LineOutcome.CHANGED],
        payload=payload,
        most=MAX_LINES_SHOWN,
    )


def _import_page(
    model_admin: Any, request: HttpRequest, form: CsvFileForm, **context: Any
) -> HttpResponseBase:
    """Return the import page with a form for a file, and further context."""
    known_sites(request)  # A message says so if there are none.
    page: HttpResponseBase = model_admin.render_page(
        request,
        "editor_settings/import",
        title=_("Import %(name)s") % {"name": model_admin.opts.verbose_name_plural},
        form=form,
        columns=", ".join(model_admin.transfer.columns),
        max_bytes=number_text(MAX_CSV_BYTES),
        max_lines=number_text(MAX_CSV_LINES),
        changelist_url=model_admin.view_url("changelist"),
        **context,
    )
    return page


class TransferAdmin(EditorSettingAdmin):
    """Base class of the admins of editor settings with CSV import and export."""

    screens: ClassVar[Sequence[Any]] = (export_view, import_view)
    change_list_template = "admin/sitemapkit/editor_settings/change_list.html"
    transfer: CsvTable

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the list, with a link to the import for users who may import."""
        may_import = self.has_add_permission(request) and self.has_change_permission(request)
        return super().changelist_view(request, {"may_import": may_import, **(extra_context or {})})
