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

from django_sitemapkit.admin.base import csv_response, known_sites, number, screen
from django_sitemapkit.admin.editor_settings import EditorSettingAdmin, add_due_message
from django_sitemapkit.admin.history import EXCLUDED, exclusion_message, log_rows
from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.overrides.cells import CsvTable
from django_sitemapkit.overrides.transfer import (
    MAX_CSV_BYTES,
    MAX_CSV_LINES,
    Comparison,
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


class FileForm(forms.Form):
    """A form for a CSV file."""

    file = forms.FileField(
        label=gettext_lazy("CSV file"),
        max_length=200,
        widget=forms.ClearableFileInput({"accept": ".csv,text/csv"}),
    )

    def clean_file(self) -> Any:
        """Reject a file that is too large, before reading it."""
        file = self.cleaned_data["file"]
        if file.size > MAX_CSV_BYTES:
            text = _("The file is larger than %(count)s bytes. Split it.")
            raise forms.ValidationError(text % {"count": number(MAX_CSV_BYTES)})
        return file


@screen("export/", "{model}_export", "view_or_change")
def export_view(model_admin: Any, request: HttpRequest) -> HttpResponseBase:
    """Send the rows of the list, of all its pages."""
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


@screen("import/", "{model}_import", "import", methods=["GET", "HEAD", "POST"])
def import_view(model_admin: Any, request: HttpRequest) -> HttpResponseBase:
    """Ask for a file, preview its changes, and apply them once the user confirms."""
    if "payload" in request.POST:
        return _apply_confirmed(model_admin, request)
    is_sent = request.method == "POST"
    form = FileForm(request.POST, request.FILES) if is_sent else FileForm()
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


def _apply_confirmed(model_admin: Any, request: HttpRequest) -> HttpResponseBase:
    """Apply a preview after comparing the rows again."""
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
        "count": number(len(new))
    }
    updated = ngettext("%(count)s row changed.", "%(count)s rows changed.", len(changed)) % {
        "count": number(len(changed))
    }
    messages.success(request, f"{created} {updated}")
    add_due_message(request, {row.site for row in (*new, *changed)})
    return HttpResponseRedirect(model_admin.view_url("changelist"))


def _signing_salt(model_admin: Any, request: HttpRequest) -> str:
    return f"sitemapkit.{model_admin.opts.model_name}.{request.user.pk}"


def _signed_payload(model_admin: Any, request: HttpRequest, data: bytes) -> str:
    """Return the file signed and compressed, for the form that applies it."""
    text = data.decode("utf-8-sig")
    payload = signing.dumps(text, salt=_signing_salt(model_admin, request), compress=True)
    limit: Any = settings.DATA_UPLOAD_MAX_MEMORY_SIZE  # None for no limit
    if limit is not None and len(payload) > limit - OTHER_FIELDS:
        raise InvalidValue("invalid-csv", _("The file is too large for a form. Split it."))
    return payload


def _preview_page(
    model_admin: Any, request: HttpRequest, comparison: Comparison, payload: str
) -> HttpResponseBase:
    """Return the page with what an import changes, and the form that applies it."""
    counts = {outcome: comparison.count(outcome) for outcome in LineOutcome}
    titles = {
        LineOutcome.INVALID: _("Invalid"),
        LineOutcome.CHANGED: _("Changed"),
        LineOutcome.CREATED: _("Created"),
    }
    return _import_page(
        model_admin,
        request,
        FileForm(),
        groups=[
            {
                "title": title,
                "outcome": outcome.value,
                "count": counts[outcome],
                "formatted_count": number(counts[outcome]),
                "lines": comparison.lines_with(outcome)[:MAX_LINES_SHOWN],
            }
            for outcome, title in titles.items()
            if counts[outcome]
        ],
        unchanged=counts[LineOutcome.UNCHANGED],
        formatted_unchanged=number(counts[LineOutcome.UNCHANGED]),
        invalid=counts[LineOutcome.INVALID],
        rows=len(comparison.lines),
        formatted_rows=number(len(comparison.lines)),
        can_apply=counts[LineOutcome.CREATED] or counts[LineOutcome.CHANGED],
        payload=payload,
        most=MAX_LINES_SHOWN,
    )


def _import_page(
    model_admin: Any, request: HttpRequest, form: FileForm, **context: Any
) -> HttpResponseBase:
    known_sites(request)  # A message says so if there are none.
    page: HttpResponseBase = model_admin.render_page(
        request,
        "editor_settings/import",
        title=_("Import %(name)s") % {"name": model_admin.opts.verbose_name_plural},
        form=form,
        columns=", ".join(model_admin.transfer.columns),
        max_bytes=number(MAX_CSV_BYTES),
        max_lines=number(MAX_CSV_LINES),
        changelist_url=model_admin.view_url("changelist"),
        **context,
    )
    return page


class TransferAdmin(EditorSettingAdmin):
    """A screen with CSV import and export."""

    screens: ClassVar[Sequence[Any]] = (export_view, import_view)
    change_list_template = "admin/sitemapkit/editor_settings/change_list.html"
    transfer: CsvTable

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Link the page of imports for users who may open it."""
        return super().changelist_view(
            request,
            {"may_import": self.has_import_permission(request), **(extra_context or {})},
        )

    def has_import_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may add and change rows."""
        return self.has_add_permission(request) and self.has_change_permission(request)
