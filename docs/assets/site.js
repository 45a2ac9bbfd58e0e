// What the theme lacks: a table that is wider than the page scrolls by itself, and the keyboard must reach it.
const reachable = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    if (target.scrollWidth > target.clientWidth) target.tabIndex = 0;
    else target.removeAttribute("tabindex");
  }
});

document$.subscribe(() => {
  for (const wide of document.querySelectorAll(".md-typeset__scrollwrap")) reachable.observe(wide);
});
