SELECT auction, price, bidder, date_time, window_start, window_start + INTERVAL '10 seconds' AS window_end
FROM (SELECT *, time_bucket(INTERVAL '10 seconds', date_time, TIMESTAMP '1970-01-01') AS window_start FROM bid)
QUALIFY price = max(price) OVER (PARTITION BY window_start)
