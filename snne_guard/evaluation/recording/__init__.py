"""Questions and recorded answers: read, drawn, appended to, found again."""
