-- Hot items: the auctions with the most bids of the last ten seconds, every two seconds.
SELECT counted.auction, counted.num, counted.window_start, counted.window_end
FROM (
    SELECT auction, COUNT(*) AS num, window_start, window_end
    FROM HOP(TABLE bid, DESCRIPTOR(date_time), INTERVAL '2' SECOND, INTERVAL '10' SECOND)
    GROUP BY auction, window_start, window_end
) AS counted
INNER JOIN (
    SELECT MAX(num) AS most, window_start, window_end
    FROM (
        SELECT auction, COUNT(*) AS num, window_start, window_end
        FROM HOP(TABLE bid, DESCRIPTOR(date_time), INTERVAL '2' SECOND, INTERVAL '10' SECOND)
        GROUP BY auction, window_start, window_end
    ) AS each_auction
    GROUP BY window_start, window_end
) AS highest
ON counted.window_start = highest.window_start AND counted.window_end = highest.window_end
    AND counted.num = highest.most
EMIT ON WINDOW CLOSE
