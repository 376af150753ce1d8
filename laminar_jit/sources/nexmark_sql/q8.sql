-- Who came and opened an auction within the same ten seconds?
SELECT p.id, p.name, p.window_start, p.window_end
FROM (
    SELECT id, name, window_start, window_end
    FROM TUMBLE(TABLE person, DESCRIPTOR(date_time), INTERVAL '10' SECOND)
    GROUP BY id, name, window_start, window_end
) AS p
INNER JOIN (
    SELECT seller, window_start, window_end
    FROM TUMBLE(TABLE auction, DESCRIPTOR(date_time), INTERVAL '10' SECOND)
    GROUP BY seller, window_start, window_end
) AS a
ON p.id = a.seller AND p.window_start = a.window_start AND p.window_end = a.window_end
EMIT ON WINDOW CLOSE
