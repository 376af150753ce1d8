-- The ten highest bids of each auction; the earlier of two equal ones first.
SELECT auction, bidder, price, date_time, place
FROM (
    SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC, date_time) AS place FROM bid
) AS ranked
WHERE place <= 10
