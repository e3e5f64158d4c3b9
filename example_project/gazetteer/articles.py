"""The gazetteer's own texts. Their dates are when they were written and last edited."""

import dataclasses
import datetime as dt


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """One article as it is first loaded."""

    slug: str
    """Its part of the address."""

    title: str
    """Its heading."""

    summary: str
    """What a list says of it."""

    body: str
    """Paragraphs, an empty line between them."""

    published_at: dt.datetime | None
    """When readers may see it; None for a draft."""

    edited_at: dt.datetime
    """When its words last changed."""

    fault: str = ""
    """What is wrong with its page on purpose."""


def _utc(*parts: int) -> dt.datetime:
    return dt.datetime(*parts, tzinfo=dt.UTC)


TEXTS = (
    Text(
        slug="how-many-people-make-a-city",
        title="How many people make a city?",
        summary="Two hundred in Denmark, fifty thousand in Japan: it means what the law says.",
        body="""\
There is no number of people at which a village becomes a town and a town a city. In Denmark, \
statisticians speak of an urban area once two hundred people live close enough together. In \
Japan a municipality that wants to be a city needs, as a rule, fifty thousand. In the United \
Kingdom neither counts: a city is what the Crown has made one, so that St Davids in Wales, \
with fewer than two thousand people, is a city, and Reading, a hundred times as large, is a \
town.

This gazetteer takes the simple way. It lists the populated places that GeoNames knows with \
more than five hundred inhabitants, and smaller ones where a district is governed from them. \
That is why hamlets stand beside capitals here, and why some places have no number at all: \
nobody has counted, or nobody has published.

So compare with care. A figure may count a municipality with its fields and forests in one \
country, and only the built-up middle of a place in another.""",
        published_at=_utc(2026, 3, 4, 9, 0),
        edited_at=_utc(2026, 3, 4, 9, 0),
    ),
    Text(
        slug="latitude-is-found-longitude-agreed",
        title="Latitude is found, longitude is agreed",
        summary="The equator is a fact of a turning planet. The line through Greenwich is a vote.",
        body="""\
A planet that turns has two poles and, halfway between them, an equator. Latitude is measured \
from there, and anyone north of it can find it on a clear night by the pole star. Longitude \
has no such natural beginning: any line from pole to pole would do.

For centuries every sea power counted from its own. Maps began at Paris, at Ferro in the \
Canary Islands, at Cádiz, at Pulkovo. In October 1884 delegates of twenty-five nations met in \
Washington and chose Greenwich, mostly because the greater part of the world's ships already \
used charts drawn from it. Twenty-two voted for it, San Domingo against, France and Brazil not \
at all. French clocks followed in 1911.

The line has moved since. Satellites measure the Earth from its centre of mass and not from \
the plumb line of one telescope, and so the zero meridian that a phone shows at Greenwich runs \
about a hundred metres east of the brass strip where visitors are photographed.""",
        published_at=_utc(2026, 4, 15, 7, 30),
        edited_at=_utc(2026, 5, 2, 16, 45),
    ),
    Text(
        slug="where-the-day-begins",
        title="Where the day begins",
        summary="Kiribati moved the date line, Samoa skipped a Friday: neighbours a day apart.",
        body="""\
Walk west around the world and you lose a day; walk east and you gain one. Somewhere the \
calendar has to make good for it. No treaty says where. The date line is drawn where the \
countries beside it put it, by choosing their time zones.

Kiribati lay on both sides. When it was Monday in the east of the country it was Tuesday in \
the capital, and offices had four working days in common. At the turn of 1994 to 1995 the \
eastern islands left out a day, and since then the Line Islands, fourteen hours ahead of \
universal time, are the first on Earth to begin each date.

Samoa followed at the end of 2011 to keep the working week of Australia and New Zealand, where \
most of its trade goes. The thirtieth of December, a Friday, never happened there. American \
Samoa, some hundred kilometres away, stayed where it was: look from one to the other and you \
look into yesterday.""",
        published_at=_utc(2026, 6, 1, 6, 0),
        edited_at=_utc(2026, 6, 1, 6, 0),
    ),
    Text(
        slug="one-place-many-spellings",
        title="One place, many spellings",
        summary="Why addresses on this site carry ñ, ø and ş, and what a computer makes of them.",
        body="""\
Wien is Vienna is Bécs is Dunaj. The name that people who live in a place use is called its \
endonym, the others its exonyms. Since 1959 experts sent by the governments to the United \
Nations have worked on writing names one way in each script, so that a rescue team, a customs \
officer and a timetable mean the same town.

About one name in five in this gazetteer uses letters beyond the twenty-six of English. They \
belong to the name: in Spanish, año is a year and ano is something else. So the addresses here \
keep them, too. A browser shows the address as it is written. On the wire each such letter \
travels as the bytes of its UTF-8 form, every byte behind a percent sign; ñ is %C3%B1.

A sitemap has to give addresses in that second form, and a slip is easily made: encode twice \
and the percent sign itself becomes %25; encode in an old character set and ñ becomes %F1. \
Either leads nowhere. With tens of thousands of such names, this site is a fair test.""",
        published_at=_utc(2026, 8, 20, 10, 15),
        edited_at=_utc(2026, 9, 11, 8, 5),
    ),
    Text(
        slug="a-country-within-a-country-within-a-country",
        title="A country within a country within a country",
        summary="In Baarle the border runs through houses; elsewhere it nested three deep.",
        body="""\
In Baarle, a small town in the Netherlands, twenty-two pieces of land belong to Belgium. In \
some of them lie pieces that are Dutch again. The border runs through gardens, shops and \
living rooms, marked with white crosses in the pavement; a house pays its taxes where its \
front door is. It goes back to medieval lords who divided their land among farms, not on maps.

The most tangled border of all is gone. Between India and Bangladesh there were more than a \
hundred and sixty enclaves, and in one place, Dahala Khagrabari, a field of India lay inside a \
village of Bangladesh, inside a piece of India, inside Bangladesh. Those who lived there had \
to cross a foreign country to reach a school or a court of their own. In the summer of 2015 \
the two countries exchanged the land, and the people could choose which citizenship to hold.

A list such as this one draws a place as a dot and gives it a single country. Mostly that is \
true enough.""",
        published_at=_utc(2026, 10, 7, 12, 0),
        edited_at=_utc(2026, 10, 7, 12, 0),
    ),
    Text(
        slug="the-highest-towns",
        title="The highest towns",
        summary="A draft: it is not published, so no list, page or sitemap shows it.",
        body="""\
La Rinconada, in the Andes of Peru, lies at about five thousand one hundred metres. People \
live there for the gold beneath it, with half of the oxygen that there is at the coast.""",
        published_at=None,
        edited_at=_utc(2026, 11, 2, 18, 20),
    ),
    Text(
        slug="one-name-many-spellings",
        title="One name, many spellings",
        summary="Its page redirects on purpose: audit_sitemaps reports it.",
        body="What this article said is in “One place, many spellings” now.",
        published_at=_utc(2026, 2, 3, 9, 0),
        edited_at=_utc(2026, 2, 3, 9, 0),
        fault="redirect",
    ),
    Text(
        slug="sources-and-notes",
        title="Sources and notes",
        summary="Its page says noindex on purpose: audit_sitemaps reports it.",
        body="These notes are for those who print the articles, not for search engines.",
        published_at=_utc(2026, 2, 4, 9, 0),
        edited_at=_utc(2026, 2, 4, 9, 0),
        fault="noindex",
    ),
    Text(
        slug="islands-that-vanished",
        title="Islands that vanished",
        summary="Its page answers 404 on purpose: audit_sitemaps and crawl_sitemaps report it.",
        body="Like Sandy Island, which maps showed until 2012, this page cannot be reached.",
        published_at=_utc(2026, 2, 5, 9, 0),
        edited_at=_utc(2026, 2, 5, 9, 0),
        fault="broken",
    ),
    Text(
        slug="places-that-no-road-leads-to",
        title="Places that no road leads to",
        summary="No page links to its page on purpose: crawl_sitemaps reports it.",
        body="Between the towns of Greenland there are no roads: one travels by boat or by air.",
        published_at=_utc(2026, 2, 6, 9, 0),
        edited_at=_utc(2026, 2, 6, 9, 0),
        fault="orphan",
    ),
)
