// Sorts the rows of a ranking by the column whose heading is pressed.
for (const button of document.querySelectorAll(".ranking th button")) {
  button.addEventListener("click", () => {
    const heading = button.parentElement;
    const table = heading.closest("table");
    const column = heading.cellIndex;
    const up = heading.getAttribute("aria-sort") === "descending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", up ? "ascending" : "descending");
    const key = (row) => row.cells[column].dataset.key;
    const compare = heading.classList.contains("number")
      ? (a, b) => Number(key(a)) - Number(key(b))
      : (a, b) => key(b).localeCompare(key(a));
    const rows = [...table.tBodies[0].rows].sort(compare);
    if (!up) rows.reverse();
    table.tBodies[0].append(...rows);
  });
}
