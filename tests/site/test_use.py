"""What a reader does on the site: open the menu on a phone, switch to dark, search, and move by keyboard."""

from __future__ import annotations

FIRST = "book/index.html"


def test_on_a_phone_the_menu_opens_on_demand_and_closes_again(phone):
    page, address = phone
    page.goto(f"{address}/{FIRST}")
    menu = page.locator(".bd-sidebar-primary .bd-links, #pst-primary-sidebar-modal .bd-links").first
    assert not menu.is_visible()
    page.locator("button.primary-toggle:visible").first.click()
    menu.wait_for(state="visible")
    page.keyboard.press("Escape")
    menu.wait_for(state="hidden")


def test_the_theme_button_changes_the_colours(phone):
    page, address = phone
    page.goto(f"{address}/{FIRST}")
    seen = set()
    for _ in range(3):  # light, dark, and what the system says
        page.locator(".theme-switch-button:visible").first.click()
        seen.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert len(seen) == 2


def test_the_search_finds_a_term_of_the_glossary(phone):
    page, address = phone
    page.goto(f"{address}/search.html?q=prefill")
    page.locator("#search-results a[href*='glossary']").first.wait_for()


def test_the_keyboard_shows_where_it_is(phone):
    page, address = phone
    page.goto(f"{address}/{FIRST}")
    outlines = []
    for _ in range(12):
        page.keyboard.press("Tab")
        outlines.append(
            page.evaluate(
                """() => {
                    const style = getComputedStyle(document.activeElement);
                    const seen = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
                    return seen ? null : document.activeElement.outerHTML.slice(0, 120);
                }"""
            )
        )
    assert [where for where in outlines if where] == []


def test_a_text_that_came_word_by_word_reads_as_a_text(phone):
    page, address = phone
    page.goto(f"{address}/notebooks/00_start_here.html")
    printed = page.locator(".cell_output pre", has_text="a lighthouse keeper").first.inner_text()
    assert len(printed.splitlines()) == 1
    assert len(printed.split()) > 40


def test_the_museum_is_filtered_by_class_and_by_silent_or_loud(phone):
    page, address = phone
    page.goto(f"{address}/notebooks/11_the_museum.html")
    gallery = page.locator(".museum")
    everything = gallery.locator("li:visible").count()
    gallery.locator("select[name=topic]").select_option("padding leaks")
    assert gallery.locator("section:visible").count() == 1
    padding = gallery.locator("li:visible").count()
    gallery.locator("select[name=voice]").select_option("silent")
    silent = gallery.locator("li:visible").count()
    assert everything > padding > silent > 0
    assert gallery.locator("output").inner_text() == f"{silent} shown"
    leads = gallery.locator("li a").evaluate_all("links => links.map(link => link.hash.slice(1))")
    nowhere = [name for name in leads if page.locator(f"[id='{name}']").count() != 1]
    assert nowhere == []


def test_without_javascript_the_museum_is_a_list(phone, browser):
    _, address = phone
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{address}/notebooks/11_the_museum.html")
    assert page.locator(".museum li:visible").count() > 40
    assert not page.locator(".museum form").is_visible()
    context.close()


def test_the_figures_with_knobs_are_turned_by_keyboard_on_a_phone(phone):
    page, address = phone
    for chapter, knob in (("08_padding", "batch"), ("12_how_much_faster", "launch_us")):
        page.goto(f"{address}/notebooks/{chapter}.html")
        explorer = page.locator(".onelaunch-explorer")
        before = explorer.locator(".said").inner_text()
        explorer.locator(f"input[name={knob}]").focus()
        page.keyboard.press("Home")
        assert explorer.locator(".said").inner_text() != before
        assert page.evaluate("document.scrollingElement.scrollWidth - innerWidth") <= 0
