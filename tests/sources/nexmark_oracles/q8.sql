SELECT DISTINCT p.id, p.name, p.window_start, p.window_start + INTERVAL '10 seconds' AS window_end
FROM (SELECT *, time_bucket(INTERVAL '10 seconds', date_time, TIMESTAMP '1970-01-01') AS window_start FROM person) p
JOIN (SELECT *, time_bucket(INTERVAL '10 seconds', date_time, TIMESTAMP '1970-01-01') AS window_start FROM auction) a
ON p.id = a.seller AND p.window_start = a.window_start
