"""Speed, memory and regret, measured and judged."""
