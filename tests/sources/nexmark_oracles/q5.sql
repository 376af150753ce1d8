-- The windows of each bid are the five that begin at or up to eight seconds before its two seconds.
WITH counted AS (
    SELECT auction, count(*) AS num, window_start, window_start + INTERVAL '10 seconds' AS window_end
    FROM (
        SELECT auction, time_bucket(INTERVAL '2 seconds', date_time, TIMESTAMP '1970-01-01')
               - step * INTERVAL '2 seconds' AS window_start
        FROM bid CROSS JOIN range(5) AS steps(step)
    )
    GROUP BY auction, window_start
)
SELECT auction, num, window_start, window_end FROM counted
QUALIFY num = max(num) OVER (PARTITION BY window_start)
