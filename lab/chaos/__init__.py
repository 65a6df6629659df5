"""A long run: ours and the naive lane under kills, triplicates and DLQ replays, in legs that can be resumed."""
