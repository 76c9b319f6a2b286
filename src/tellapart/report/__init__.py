"""Pages for people: self-contained HTML, pictures inside."""
