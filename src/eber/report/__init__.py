"""Results for people: tables, figures and the HTML page."""
