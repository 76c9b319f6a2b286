"""METEOR 1.5 (Denkowski and Lavie 2014) without Java, statistic for statistic equal to its jar."""
