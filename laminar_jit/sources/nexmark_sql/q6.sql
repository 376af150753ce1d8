-- The average winning price of each seller's last ten auctions that were sold.
SELECT seller, id,
    AVG(price) OVER (PARTITION BY seller ORDER BY date_time, id ROWS BETWEEN 9 PRECEDING AND CURRENT ROW) AS average
FROM (
    SELECT a.id, a.seller, b.price, b.date_time,
        ROW_NUMBER() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.date_time) AS place
    FROM auction AS a INNER JOIN bid AS b ON a.id = b.auction
    WHERE b.date_time BETWEEN a.date_time AND a.expires
) AS ranked
WHERE place = 1
