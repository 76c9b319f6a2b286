"""What came out of a reproduction, as Markdown: tables side by side, and every claim with its intervals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from jinja2 import Environment, PackageLoader

from tellapart.recipe import find_recipe
from tellapart.report.reproduction_charts import Plot, chapter_plots
from tellapart.reproduction.findings import Chapter, Findings, Mark
from tellapart.reproduction.plan import Column, Row, Table, cell
from tellapart.reproduction.verdicts import Compared, Judged
from tellapart.storage import write_text

NOT_RUN = "not run"


def write_reproduction_markdown(path: Path, found: Findings) -> None:
    """Write the whole report but for its pictures; plots stand beside it, a file each."""
    template = Environment(
        loader=PackageLoader("tellapart.report"), autoescape=True, trim_blocks=True, lstrip_blocks=True
    ).get_template("plot.svg")
    drawn = {
        chapter.paper.name: {
            f"{chapter.paper.name}-{plot.name}.svg": plot for plot in chapter_plots(chapter, found)
        }
        for chapter in found.chapters
    }
    for plots in drawn.values():
        for name, plot in plots.items():
            write_text(path.with_name(name), template.render(chart=plot) + "\n")
    write_text(path, "\n".join(_lines(found, drawn)) + "\n")


def _lines(found: Findings, drawn: Mapping[str, Mapping[str, Plot]]) -> Iterator[str]:
    yield "# " + title(found)
    yield ""
    yield from introduction(found)
    for chapter in found.chapters:
        yield from ("", f"## {chapter.paper.title}")
        yield from remarks(chapter, found)
        yield from ("", "### Claims", "")
        yield from _claims(chapter.judged)
        for table in chapter.paper.tables:
            yield from ("", f"### {table.name}: {table.title}", "")
            yield from table_lines(table, found)
        for name, plot in drawn[chapter.paper.name].items():
            yield from ("", f"![{plot.title}]({name})", "", plot.title)
        yield from _galleries(chapter)
        if chapter.paper.left_out:
            yield from ("", "### Not run", "", *(f"- {line}" for line in chapter.paper.left_out))
    yield from _appendix(found)


def title(found: Findings) -> str:
    """Of the page."""
    names = ", ".join(chapter.paper.name for chapter in found.chapters)
    return f"What holds of {names} on {found.ground}"


def remarks(chapter: Chapter, found: Findings) -> Iterator[str]:
    """What has to be known of a paper, and which of its methods are best."""
    for note in chapter.paper.notes:
        yield from ("", note)
    best = [mark for mark in found.marks(chapter.paper) if mark.is_best]
    if best:
        yield from ("", "No other is better than these in both CIDEr-D and R@1:", "")
        yield from (f"- {mark_text(mark)}" for mark in sorted(best, key=lambda mark: -mark.accuracy))
        yield from ("", "Best, by these figures alone:", "")
        for sense, mark in found.best(chapter.paper).items():
            yield f"- {sense}: {mark_text(mark)}"


def mark_text(mark: Mark) -> str:
    """A method with both its figures."""
    return f"{mark.name}: {mark.accuracy:.3f}, {mark.found:.1%}"


def introduction(found: Findings) -> Iterator[str]:
    """What was run, where and by whom it was judged."""
    yield f"Command: `{found.command}`"
    yield ""
    about = found.about
    minutes = sum({(one.method, one.seed): one.core_minutes for one in found.made}.values())
    yield (
        f"{found.pictures:,} test pictures of {found.ground}; {minutes:.1f} minutes of processor time in "
        f"training, "
        f"{sum(one.seconds for one in found.made) / 60:.1f} minutes of writing captions. Reported on "
        f"{about['day']} at commit "
        f"{about['commit']} on {about['machine']}."
    )
    yield ""
    yield (
        f"Self-retrieval is judged by {found.judge}, which has taught none of the methods: their teacher is "
        f"{found.teacher}. Figures are means over seeds, ± their standard deviation where there are "
        "several; perplexity is of the first. An interval (95 %) is over test pictures drawn anew, so it "
        "does not tell how another seed would have come out; counts of different words and captions are "
        "compared on halves of the pictures instead. A part of a claim holds if its whole interval lies on "
        "the claimed side; where it holds 0, there may also have been too few pictures to tell. Of parts of "
        "which nothing is true, one in forty holds by chance: of a claim with many, some may."
    )
    planned = sum(len(job.ways) for job in found.chosen.plan.jobs)
    if len(found.made) < planned:
        yield from ("", f"**So far**: {len(found.made)} of the {planned} files of the plan are there.")
    for line in found.chosen.given_up:
        yield from ("", f"**Smaller than planned**, to fit the budget: {line}.")
    for job, why in found.failed.items():
        yield from ("", f"**Not run**, for it failed: {job}: {why}.")
    for job, ways in found.trained_again.items():
        where = "on another machine, whose sums differ in the last bits"
        yield ""
        yield f"Trained again, with the same settings and seed {where}: {job}, for {', '.join(ways)}."
    for name, why in found.skipped.items():
        yield from ("", f"Not measured: {name}: {why}.")


def _claims(judged: Iterable[Judged]) -> Iterator[str]:
    yield "| claim | verdict | parts: difference and interval |"
    yield "|---|---|---|"
    for one in judged:
        parts = "<br>".join(map(part_text, one.parts))
        words = f"**{one.claim.name}**: {one.claim.quoted} ({one.claim.where})"
        yield f"| {words} | **{one.said}** | {parts} |"


def part_text(compared: Compared) -> str:
    """A part of a claim with what came out."""
    said = compared.part.said
    if compared.value is None:
        return f"{said}: {NOT_RUN}"
    seeds = f"{compared.seeds} seed{'s' if compared.seeds > 1 else ''}"
    if compared.seeds < compared.planned:
        seeds = f"{compared.seeds} of {compared.planned} seeds"
    if compared.is_of_halves:
        seeds += ", on halves of the pictures"
    value = f"{signed(compared.value)}"
    if compared.low is None or compared.high is None:
        return f"{said}: {value}, no interval ({seeds})"
    answer = "yes" if compared.holds else "the opposite" if compared.is_opposed else "not shown"
    return f"{said}: {answer}, {value} [{signed(compared.low)}, {signed(compared.high)}] ({seeds})"


def signed(value: float) -> str:
    """A difference as short as can be."""
    return f"{value:+.3f}" if abs(value) < 10 else f"{value:+.0f}"


def table_lines(table: Table, found: Findings) -> Iterator[str]:
    """The paper's numbers and ours, a line each."""
    yield f"| | | {' | '.join(column.label for column in table.columns)} |"
    yield f"|{'---|' * (len(table.columns) + 2)}"
    for row in table.rows:
        for who, cells in both(row, table.columns, found):
            yield f"| {row.label if who == 'paper' or not row.paper else ''} | {who} | {' | '.join(cells)} |"
    if table.note:
        yield from ("", table.note)


def both(row: Row, columns: Sequence[Column], found: Findings) -> Iterator[tuple[str, list[str]]]:
    """The paper's cells, where it has the row, and ours."""
    if row.paper:
        yield "paper", [_printed(number) for number in row.paper]
    if row.ours:
        seeds = len(found.seeds(row.ours))
        who = f"{ours_name(row, found)}, {seeds} seed{'s' if seeds != 1 else ''}" if seeds else "ours"
        yield who, [number(row, column, found) for column in columns]


def ours_name(row: Row, found: Findings) -> str:
    """What our row is called: a smaller size never has the name of the larger."""
    return "ours" if found.chosen.share == 1 else f"ours, {found.chosen.share:g} of the epochs"


def _printed(text: str) -> str:
    return {"": "–", "?": "(cannot be read)"}.get(text, text)


def number(row: Row, column: Column, found: Findings) -> str:
    """Our figure of a row, as the paper prints its own."""
    if not found.seeds(row.ours):
        return NOT_RUN
    where = (
        f"{cell(row.ours).method}/{column.way}" if column.way and not row.ours.endswith("-set") else row.ours
    )
    value = found.value(where, column.measure) if column.measure else None
    if value is None:
        return "–"
    spread = found.spread(where, column.measure)
    tail = "" if spread is None else f" ± {spread * column.scale:.{column.digits}f}"
    return f"{value * column.scale:.{column.digits}f}{tail}"


def _galleries(chapter: Chapter) -> Iterator[str]:
    for gallery in chapter.galleries:
        yield from ("", f"### Examples: {gallery.rule}", "")
        for exhibit in gallery.exhibits:
            yield f"- `{exhibit.image_id}`: people: “{exhibit.people}”"
            yield from (f"  - {name}: “{caption}”" for name, caption in exhibit.captions)


def _appendix(found: Findings) -> Iterator[str]:
    yield from (
        "",
        "## How it was made",
        "",
        "| run | seed | settings | minutes of one core | commit | day | machine |",
    )
    yield f"|{'---|' * 7}"
    for one in {(some.method, some.seed): some for some in found.made}.values():
        cells = (
            one.method,
            str(one.seed),
            one.settings,
            f"{one.core_minutes:.1f}",
            one.commit,
            one.day,
            one.machine,
        )
        yield f"| {' | '.join(cells)} |"
    yield from ("", "Recipes and changes:", "")
    yield from recipe_lines(found)
    for name, text in recipe_texts(found).items():
        yield from ("", f"The recipe `{name}`:", "", "```toml", *text.splitlines(), "```")
    yield from ("", "Measures:", "")
    yield from (f"- {name}: `{signature}`" for name, signature in found.signatures.items())


def recipe_lines(found: Findings) -> Iterator[str]:
    """Every method's recipe, and all that is changed in it."""
    for name, (recipe, changes) in found.recipes.items():
        yield f"- {name}: `{recipe}`" + "".join(f" `{change}`" for change in changes)


def recipe_texts(found: Findings) -> dict[str, str]:
    """Each recipe as it is before anything is changed in it."""
    names = dict.fromkeys(recipe for recipe, _ in found.recipes.values())
    return {name: find_recipe(name).read_text(encoding="utf-8").rstrip() for name in names}
