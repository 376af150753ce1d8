-- A bid exactly ten seconds after the last one still belongs; a session ends ten seconds after its last bid.
SELECT bidder, count(*) AS bid_count, min(date_time) AS starttime, max(date_time) + INTERVAL '10 seconds' AS endtime
FROM (
    SELECT *, sum(starts) OVER (PARTITION BY bidder ORDER BY date_time ROWS UNBOUNDED PRECEDING) AS number
    FROM (
        SELECT bidder, date_time,
            coalesce(date_time - lag(date_time) OVER (PARTITION BY bidder ORDER BY date_time)
                     > INTERVAL '10 seconds', true)::BIGINT AS starts
        FROM bid
    )
)
GROUP BY bidder, number
