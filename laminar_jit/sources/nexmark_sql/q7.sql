-- The highest bids of every ten seconds.
SELECT b.auction, b.price, b.bidder, b.date_time, b.window_start, b.window_end
FROM (
    SELECT auction, price, bidder, date_time, window_start, window_end
    FROM TUMBLE(TABLE bid, DESCRIPTOR(date_time), INTERVAL '10' SECOND)
) AS b
INNER JOIN (
    SELECT MAX(price) AS price, window_start, window_end
    FROM TUMBLE(TABLE bid, DESCRIPTOR(date_time), INTERVAL '10' SECOND)
    GROUP BY window_start, window_end
) AS highest
ON b.window_start = highest.window_start AND b.window_end = highest.window_end AND b.price = highest.price
EMIT ON WINDOW CLOSE
