"""What each paper says, as data: its methods, its tables, its claims."""
