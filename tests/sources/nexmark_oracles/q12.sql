SELECT bidder, count(*) AS bid_count,
    time_bucket(INTERVAL '10 seconds', date_time, TIMESTAMP '1970-01-01') AS starttime,
    time_bucket(INTERVAL '10 seconds', date_time, TIMESTAMP '1970-01-01') + INTERVAL '10 seconds' AS endtime
FROM bid GROUP BY ALL
