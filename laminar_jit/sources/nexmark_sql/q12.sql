-- How many bids did a bidder make every ten seconds? By event time; the original asks the clock.
SELECT bidder, COUNT(*) AS bid_count,
    TUMBLE_START(date_time, INTERVAL '10' SECOND) AS starttime,
    TUMBLE_END(date_time, INTERVAL '10' SECOND) AS endtime
FROM bid
GROUP BY bidder, TUMBLE(date_time, INTERVAL '10' SECOND)
EMIT ON WINDOW CLOSE
