-- How many bids did a bidder make without a pause of more than ten seconds?
SELECT bidder, COUNT(*) AS bid_count,
    SESSION_START(date_time, INTERVAL '10' SECOND) AS starttime,
    SESSION_END(date_time, INTERVAL '10' SECOND) AS endtime
FROM bid
GROUP BY bidder, SESSION(date_time, INTERVAL '10' SECOND)
EMIT ON WINDOW CLOSE
